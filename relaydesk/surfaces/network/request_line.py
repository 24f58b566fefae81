"""Where bytes go that are no request yet, or never will be one: as far as their first lines show it."""

from __future__ import annotations

from typing import Final

from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.surfaces.network.asked import place_of

# Of a request that cannot be parsed: enough to see which path it was for.
MOST_BEGUN: Final = 8192


def place_in(text: bytes, prefix: str, *, begins: bool = True) -> str:
    """The place of a request in ``text``, empty where no line of it has a path.

    Where ``text`` ``begins`` with a request, its first line may be broken off or no HTTP.

    Where requests follow one another and any of them is for the relay's path, it is that one: they are
    answered together, and whoever asks the relay must see the marker.
    """
    found = ""
    for number, line in enumerate(text[:MOST_BEGUN].split(b"\n")):
        words = line.rstrip(b"\r").split(b" ")
        # Elsewhere there are headers and bodies, too.
        whole = len(words) == 3 and words[2].startswith(b"HTTP/")
        if not whole and (number or not begins or len(words) < 2):
            continue
        place = place_of(_path_of(words[1].decode("latin-1").strip()), prefix)
        if place == RELAY_PATH:
            return place
        found = found or place
    return found


def _path_of(target: str) -> str:
    """The path of a request's target, which may be a whole URL (RFC 9112 §3.2.2)."""
    target = target.partition("?")[0].partition("#")[0]
    _, scheme, rest = target.partition("://")
    return "/" + rest.partition("/")[2] if scheme and not target.startswith("/") else target
