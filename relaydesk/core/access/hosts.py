"""Whose name a request may call a hub by that only this machine can reach.

A page anywhere can point a name of its own at 127.0.0.1 after it was loaded (DNS rebinding): its requests
then count as its own origin's, and only their ``Host`` gives them away.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from relaydesk.core.tls.names import parse_address

_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[^:\[\]/@\s]+)(?::[0-9]{0,5})?")


def host_name(header: str) -> str | None:
    """The name or address in a ``Host`` header, lower case and without port; None for what is neither."""
    found = _HOST.fullmatch(header.strip())
    return found["name"].lower().removesuffix(".") if found else None


def is_own(header: str, names: Collection[str]) -> bool:
    """Whether a ``Host`` header means this machine: ``localhost`` and below, a loopback address, or one of
    ``names`` (lower case)."""
    name = host_name(header)
    if name is None:
        return False
    address = parse_address(name)
    if address is not None:
        return address.is_loopback or str(address) in names
    return name == "localhost" or name.endswith(".localhost") or name in names
