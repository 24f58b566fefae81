"""Where a layer is dialed, and by which name it is asked there."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from relaydesk.config.model import Settings
from relaydesk.core.hopcheck.model import Layer
from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.engine.relay.entrance import trusting


@dataclass(frozen=True, slots=True)
class Door:
    """``host`` and ``port`` are dialed; ``authority`` is the ``Host`` and ``name`` what TLS asks for.

    A layer that is given by its address is asked by the public name: so the layers outside of it ask it too.
    """

    layer: Layer
    scheme: str
    host: str
    port: int
    authority: str
    name: str
    prefix: str

    @property
    def tls(self) -> bool:
        """Whether TLS is spoken here."""
        return self.scheme == "https"

    def url(self, path: str) -> str:
        """A URL for people."""
        return self.layer.url + path

    @property
    def relay(self) -> str:
        """The path of the relay's route."""
        return self.prefix + RELAY_PATH


def door_of(layer: Layer, public: Layer) -> Door:
    """The door of a layer. Raises `ValueError` for a URL that has no host."""
    parts, outer = urlsplit(layer.url), urlsplit(public.url)
    if not parts.hostname or not outer.hostname:
        raise ValueError("a URL without a host")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    asked = outer if layer is public or numeric(parts.hostname) else parts
    return Door(
        layer=layer,
        scheme=parts.scheme,
        host=parts.hostname,
        port=port,
        authority=asked.netloc,
        name=asked.hostname or "",
        prefix=parts.path.rstrip("/"),
    )


def numeric(host: str) -> bool:
    """Whether a host is an address, or the name that stands for this machine."""
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Trusts:
    """What callers trust, offering HTTP/1.1 as they do, both versions, or HTTP/2 alone."""

    callers: ssl.SSLContext
    both: ssl.SSLContext
    second: ssl.SSLContext


def trusts(settings: Settings) -> Trusts:
    """The contexts of a check. Reads files: not on the loop. Raises `EnvError` ``tls_failed``."""
    made = [trusting(settings) for _ in range(3)]
    for context, offered in zip(made, (["http/1.1"], ["h2", "http/1.1"], ["h2"]), strict=True):
        context.set_alpn_protocols(offered)
    return Trusts(*made)


def loose(offered: Sequence[str] = ("http/1.1",)) -> ssl.SSLContext:
    """A context that takes any certificate: what stands behind a bad one is looked at all the same."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(offered))
    return context
