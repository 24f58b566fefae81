"""Whether the hub's listener speaks TLS (``RELAY_V1_TLS``)."""

from __future__ import annotations

from relaydesk.core.errors import LocalError
from relaydesk.core.text import safe_text
from relaydesk.core.tls.names import parse_address


def loopback_only(host: str) -> bool:
    """Whether a listener on ``host`` can be reached from this machine only.

    An empty host is every interface. A name other than localhost is not resolved: what it means may
    change, so it counts as reachable.
    """
    address = parse_address(host)
    if address is not None:
        return address.is_loopback
    name = host.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


def tls_wanted(mode: str, host: str) -> bool:
    """``on``, ``off``, or ``auto``: TLS unless the listener is loopback-only. Raises ``bad_setting``."""
    if mode not in ("auto", "on", "off"):
        raise LocalError(
            "bad_setting",
            f"RELAY_V1_TLS is {safe_text(mode, 40)!r}",
            "it can be auto, on or off",
            param="RELAY_V1_TLS",
        )
    return mode == "on" or (mode == "auto" and not loopback_only(host))
