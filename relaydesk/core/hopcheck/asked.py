"""What a probe with a nonce asks the node itself for: the header that carries it.

``X-Zs-Relay-Probe: NONCE[; MODE[=SECONDS]]``. It is ours, beside the wire. The answers come from the relay's
own route, since edges are configured by path. Without a good nonce the header is as if it were not there.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, cast

Mode = Literal["stream", "error", "echo", "headers", "silence"]

HEADER: Final = "X-Zs-Relay-Probe"
# Above the longest silence that is asked for, and below what would tie a connection up.
MOST_SILENCE_S: Final = 130.0
NONCE_BYTES: Final = 16
_ASKED: Final = re.compile(
    r"(?P<nonce>[0-9a-f]{32})"
    r"(?:; ?(?P<mode>stream|error|echo|headers|silence)(?:=(?P<seconds>[0-9]{1,3}(?:\.[0-9]{1,3})?))?)?"
)
_NONCE: Final = re.compile(r"[0-9a-f]{32}")


class Asked(NamedTuple):
    """``seconds`` is how long a silence is to last, 0 for every other mode."""

    nonce: str
    mode: Mode
    seconds: float


def parse_asked(text: str) -> Asked | None:
    """The header's value, None for what is none: too long a silence, another mode, another form."""
    found = _ASKED.fullmatch(text) if len(text) <= 64 else None
    if found is None:
        return None
    mode = cast("Mode", found["mode"] or "stream")
    if (found["seconds"] is not None) != (mode == "silence"):
        return None
    seconds = float(found["seconds"] or 0)
    return Asked(found["nonce"], mode, seconds) if seconds <= MOST_SILENCE_S else None


def asked_header(nonce: str, mode: Mode, seconds: float = 0.0) -> tuple[str, str]:
    """The header that asks for it."""
    return HEADER, f"{nonce}; {mode}" + (f"={seconds:g}" if mode == "silence" else "")


def is_nonce(text: str) -> bool:
    """Whether this can be a nonce at all."""
    return _NONCE.fullmatch(text) is not None
