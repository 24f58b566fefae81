"""The chunks of a timed answer: all of one size, so that their arrivals can be told by counting bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relaydesk.core.hopcheck.answers import PROBED

SIZE: Final = 64


def chunk(number: int) -> bytes:
    """The chunk of this number (below 10), an event of Server-Sent Events."""
    text = f'data: {{"{PROBED}":"stream","chunk":{number}}}'.encode()
    return text.ljust(SIZE - 2) + b"\n\n"


def held_back(arrivals: Sequence[int], gap_ms: int) -> bool:
    """Whether chunks that were sent so far apart came as from a buffer; ``arrivals`` in ms from any moment.

    The last one was sent so long after the first: each is late by what it came after its turn. A busy
    machine delays a chunk or two; a buffer all but the last, or all but the first and the last.
    """
    lasted = gap_ms * (len(arrivals) - 1)
    first = arrivals[-1] - lasted
    late = sum(max(0, at - first - number * gap_ms) for number, at in enumerate(arrivals))
    return late / len(arrivals) > lasted / 4
