"""The chunks of a timed answer: all of one size, so that their arrivals can be told by counting bytes."""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.answers import PROBED

SIZE: Final = 64


def chunk(number: int) -> bytes:
    """The chunk of this number (below 10), an event of Server-Sent Events."""
    text = f'data: {{"{PROBED}":"stream","chunk":{number}}}'.encode()
    return text.ljust(SIZE - 2) + b"\n\n"
