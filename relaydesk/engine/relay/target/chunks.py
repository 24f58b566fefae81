"""The frames of a dialect's stream, taken apart: each chunk is sealed by itself (wire §4.7)."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.sse import DONE

_DATA: Final = b"data: "
_LATER: Final = b"\ndata: "


def chunks_of(frames: bytes) -> list[bytes]:
    """What stands behind ``data:`` in frames of our own making, without comments and ``[DONE]``."""
    found = []
    for event in frames.split(b"\n\n"):
        data = event[len(_DATA) :] if event.startswith(_DATA) else event.partition(_LATER)[2]
        if data and data != DONE:
            found.append(data)
    return found
