"""The layers of a check: those that are named, and those that a node knows of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from relaydesk.config.kinds import base_url
from relaydesk.core.errors import LocalError
from relaydesk.core.hopcheck.model import Layer
from relaydesk.core.relay.dialable import public_address
from relaydesk.core.text import safe_text

MOST_VIA: Final = 6
PUBLIC: Final = "public"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_TAKEN: Final = ("loopback", "lan", PUBLIC)
_HINT: Final = "give it as NAME=URL, such as nginx=http://127.0.0.1:8080"


def chain(found: Iterable[Layer], via: Sequence[str], url: str) -> tuple[Layer, ...]:
    """All layers from the inside outwards. Raises `LocalError` ``invalid_request``."""
    if len(via) > MOST_VIA:
        raise LocalError(
            "invalid_request", f"a check has at most {MOST_VIA} layers between", "leave some out", param="via"
        )
    public = Layer(PUBLIC, checked_url(url), "public")
    named = [named_layer(each) for each in via]
    names = [each.name for each in named]
    if len(set(names)) < len(names):
        raise LocalError("invalid_request", "two layers have one name", _HINT, param="via")
    return (*(each for each in found if each.url != public.url), *named, public)


def named_layer(text: str) -> Layer:
    """``NAME=URL``. Raises `LocalError` ``invalid_request``."""
    name, equals, url = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or name in _TAKEN:
        raise LocalError("invalid_request", f"{safe_text(text, 64)!r} names no layer", _HINT, param="via")
    return Layer(name, checked_url(url, "via"), "via")


def checked_url(text: str, param: str = "url") -> str:
    """A base URL without a slash at its end. Raises `LocalError` ``invalid_request``."""
    kind = base_url()
    try:
        url = kind.parse(text)
    except ValueError:
        url = ""
    if not url:
        raise LocalError(
            "invalid_request", f"{safe_text(text, 64)!r} is no base URL", f"give {kind.allowed}", param=param
        )
    return url


def own_layers(listening: Sequence[str], addresses: Iterable[object]) -> tuple[Layer, ...]:
    """The node's own doors: by loopback, and by an address of the house where it listens there."""
    if not listening:
        return ()
    parts = urlsplit(listening[0])
    scheme, host, port = parts.scheme, parts.hostname or "", parts.port or 0
    if host != "localhost":
        kind = _kind_of(host)
        return (Layer(kind, f"{scheme}://{parts.netloc}", "loopback" if kind == "loopback" else "lan"),)
    found = [Layer("loopback", f"{scheme}://127.0.0.1:{port}", "loopback")]
    houses = [each for each in addresses if isinstance(each, IPv4Address) and not each.is_loopback]
    lan = next((each for each in sorted(houses) if not public_address(each)), None)
    if lan is not None:
        found.append(Layer("lan", f"{scheme}://{lan}:{port}", "lan"))
    return tuple(found)


def _kind_of(host: str) -> str:
    try:
        return "loopback" if ip_address(host).is_loopback else "lan"
    except ValueError:
        return "lan"
