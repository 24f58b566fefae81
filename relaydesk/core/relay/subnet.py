"""Whether two nodes stand in one public /16: a sign that one hand has both (wire §3.1).

The ranges are spelled out. This predicate knows no CGNAT and no documentation ranges, unlike the guard of
`dialable`: the two answer different questions (wire §8.3).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_NOT_PUBLIC: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "127.0.0.0/8",
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",  # RFC 1918
        "169.254.0.0/16",  # link-local
        "0.0.0.0/32",  # unspecified
        "224.0.0.0/4",  # multicast
    )
)  # fmt: skip


def same_public_16(host_a: str, host_b: str) -> bool:
    """Whether both hosts are public literal IPv4 addresses of one /16.

    Names, IPv6, and addresses that are not public count as diverse.
    """
    net_a = public_16(host_a)
    return net_a is not None and net_a == public_16(host_b)


@lru_cache(maxsize=4096)
def url_host(url: str) -> str:
    """The host in a node's URL, without brackets and port; empty where there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@lru_cache(maxsize=4096)
def public_16(host: str) -> int | None:
    """The first 16 bits of a public literal IPv4 address; None for any other host."""
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        return None
    return None if any(address in network for network in _NOT_PUBLIC) else int(address) >> 16
