"""The address a listener binds to, as people write it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

_HOST: Final = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PORT: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. An empty ``host`` is every interface of both IP families, port 0 a free port."""

    host: str
    port: int

    @property
    def loopback_only(self) -> bool:
        """Whether nobody outside this machine can connect: decides what ``RELAY_V1_TLS=auto`` means.

        A host name other than ``localhost`` counts as not loopback: what it resolves to may change.
        """
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> Listen:
    """``:port``, ``host:port``, ``v4:port`` or ``[v6]:port``. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not colon or not _PORT.fullmatch(port) or int(port) > 65535:
        raise ValueError("no port of 0 to 65535 behind the last colon")
    if host.startswith("[") and host.endswith("]"):
        return Listen(str(ipaddress.IPv6Address(host[1:-1])), int(port))
    if ":" in host:
        raise ValueError("an IPv6 address is written in brackets")
    if host and not _HOST.fullmatch(host):
        raise ValueError("not a host name or address")
    if re.fullmatch(r"[0-9.]+", host):
        host = str(ipaddress.IPv4Address(host))
    return Listen(host.lower(), int(port))
