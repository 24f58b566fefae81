"""Who a request comes from when a reverse proxy brings it.

Anybody can write ``X-Forwarded-For``. It is believed only from a proxy that the operator named, and only as
far back as such proxies reach.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from relaydesk.core.tls.names import Address, Network, parse_address

# Longer chains than this are not read: each hop is one that the operator runs.
MOST_HOPS: Final = 32

_WITH_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):[0-9]{1,5}")
_PAIR: Final = re.compile(
    r"""[ \t]*(?P<name>[A-Za-z]+)=(?:"(?P<quoted>[^"\\]*)"|(?P<bare>[^\s;,"]*))[ \t]*"""
)


@dataclass(frozen=True, slots=True)
class Client:
    """Where a request came from. ``proxy`` is the address that connected, empty where that is the client.

    ``address`` is empty where it is not known; ``scheme`` is what the client spoke, ``http`` or ``https``.
    """

    address: str
    scheme: str
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class _Hop:
    address: Address | None
    scheme: str = ""


def client_of(
    peer: str, scheme: str, headers: Iterable[tuple[str, str]], trusted: Sequence[Network]
) -> Client:
    """The client behind a connection from ``peer`` that speaks ``scheme``.

    From a trusted peer the chain is read backwards, and the first address that is no trusted proxy is the
    client; what stands before it, anybody may have written. ``Forwarded`` (RFC 7239) and
    ``X-Forwarded-For`` count the same. Where both are there and name different clients, one of them was
    passed on unseen, and neither counts.
    """
    near = parse_address(peer)
    shown = peer if near is None else str(near)
    if near is None or not _within(near, trusted):
        return Client(shown, scheme)
    named = [(name.lower(), value) for name, value in headers]
    old = _last(_x_forwarded([value for name, value in named if name == "x-forwarded-for"]), trusted)
    new = _last(_forwarded([value for name, value in named if name == "forwarded"]), trusted)
    if old is not None and new is not None and old.address != new.address:
        return Client(shown, scheme)
    hop = old or new
    protos = [part.strip().lower() for name, value in named if name == "x-forwarded-proto" for part in
              value.split(",")]  # fmt: skip
    spoken = (new.scheme if new else "") or (protos[-1] if protos else "")
    scheme = spoken if spoken in ("http", "https") else scheme
    if hop is None or hop.address is None:
        return Client(shown, scheme)
    return Client(str(hop.address), scheme, shown)


def is_trusted(peer: str, trusted: Sequence[Network]) -> bool:
    """Whether a connection from ``peer`` is a trusted proxy's, and so none of one client."""
    near = parse_address(peer)
    return near is not None and _within(near, trusted)


def parse_network(text: str) -> str:
    """One address or network of the setting, as it is kept. Raises `ValueError`."""
    return str(ipaddress.ip_network(text))


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _last(hops: list[_Hop], trusted: Sequence[Network]) -> _Hop | None:
    """The hop that trusted proxies vouch for: the last one that is none of them, else the first."""
    found: _Hop | None = None
    for hop in reversed(hops[-MOST_HOPS:]):
        if hop.address is None:
            break  # a hop that hides, or nonsense: what stands before it is hearsay
        found = hop
        if not _within(hop.address, trusted):
            break
    return found


def _x_forwarded(values: list[str]) -> list[_Hop]:
    return [_Hop(_address(part)) for value in values for part in value.split(",")]


def _forwarded(values: list[str]) -> list[_Hop]:
    hops = []
    for value in values:
        for element in value.split(","):
            pairs: dict[str, str] = {}
            for part in element.split(";"):
                if found := _PAIR.fullmatch(part):
                    pairs[found["name"].lower()] = found["quoted"] or found["bare"] or ""
            hops.append(_Hop(_address(pairs.get("for", "")), pairs.get("proto", "").lower()))
    return hops


def _address(text: str) -> Address | None:
    """An address with or without a port (RFC 7239 §6), None for names, ``unknown`` and the rest."""
    text = text.strip()
    with_port = _WITH_PORT.fullmatch(text)
    return parse_address(with_port[1] if with_port else text)
