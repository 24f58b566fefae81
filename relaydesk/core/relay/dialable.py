"""Which addresses a node may be dialed at: the guard against requests that a relay is aimed inwards with.

It is asked about the address that is about to be dialed, never about a name (wire §1.3). The ranges are
spelled out: `ipaddress.is_private` also holds for ranges that carry nothing private (wire §8.3).
"""

from __future__ import annotations

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_REFUSED_V4: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # unspecified, and "this network"
        "127.0.0.0/8",
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",  # RFC 1918
        "169.254.0.0/16",  # link-local: the clouds' own services among them
        "100.64.0.0/10",  # CGNAT, RFC 6598
        "224.0.0.0/4",  # multicast
        # Beyond the wire's list, because no node is ever reached there and machines of a provider may be:
        "192.0.0.0/24",  # protocol assignments
        "198.18.0.0/15",  # benchmarks, used inside networks
        "168.63.129.16/32",  # one cloud's host service
        "240.0.0.0/4",  # reserved, and broadcast
    )
)  # fmt: skip
# All of IPv6 that was ever given out to be reached from everywhere: loopback, unique local, link-local,
# multicast and the forms that carry IPv4 stand outside of it.
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
_TEREDO: Final = ipaddress.IPv6Network("2001::/32")  # a tunnel to an IPv4 address that it hides
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def public_address(address: str | Address) -> bool:
    """Whether this IP address may be dialed for somebody else. What is no address may not."""
    if isinstance(address, str):
        try:
            address = ipaddress.ip_address(address)
        except ValueError:
            return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False  # an address that means something on one link only
        carried = _carried_v4(address)
        if carried is None:
            return address in _GLOBAL_V6 and address not in _TEREDO
        address = carried
    return not any(address in network for network in _REFUSED_V4)


def _carried_v4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that packets to this one end at, by mapping, 6to4 or NAT64; None for a plain one."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
