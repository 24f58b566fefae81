"""The weighted draw of a relay, anew for every request (wire §3.2).

Fast relays are drawn more often, but a floor stays for each: none gets everything, and none that is eligible
gets nothing. What a relay can win by faking its latency is bounded by the same formula.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import Final

# Added to each round trip: differences below it hardly count.
SOFTENING_MS: Final = 50.0
# The share that is spread evenly.
UNIFORM: Final = 0.15


def weights(rtts_ms: Sequence[float | None]) -> list[float]:
    """The probability of each relay, from its round trip in ms; None where there is no fresh measure.

    An unknown one gets the median weight of those that are known; with none known, all are equal.
    """
    count = len(rtts_ms)
    known = [None if rtt is None else _weight(rtt) for rtt in rtts_ms]
    measured = [weight for weight in known if weight is not None]
    if not measured:
        return [1 / count] * count if count else []
    middle = median(measured)
    filled = [middle if weight is None else weight for weight in known]
    total = sum(filled)
    return [UNIFORM / count + (1 - UNIFORM) * weight / total for weight in filled]


def pick(probabilities: Sequence[float], seed64: int) -> int:
    """The index that 64 random bits draw. Raises `ValueError` where there is nothing to draw from."""
    return pick_at(list(accumulate(probabilities)), seed64)


def pick_at(cumulative: Sequence[float], seed64: int) -> int:
    """`pick` over sums that were made before, for many draws from one distribution."""
    if not cumulative:
        raise ValueError("nothing to draw from")
    # The upper 53 bits are all that a double holds: the point is below 1 for every seed.
    point = (seed64 >> 11) * 2.0**-53 * cumulative[-1]
    return min(bisect_right(cumulative, point), len(cumulative) - 1)


def plain_pick(count: int, seed64: int) -> int:
    """The index where no latency is known. Raises `ValueError` where there is nothing to draw from."""
    if count < 1:
        raise ValueError("nothing to draw from")
    return seed64 % count


def draw(rtts_ms: Sequence[float | None], seed64: int) -> int:
    """The index of the relay for one request, by 64 fresh random bits.

    Raises `ValueError` where there is nothing to draw from.
    """
    if all(rtt is None for rtt in rtts_ms):
        return plain_pick(len(rtts_ms), seed64)
    return pick(weights(rtts_ms), seed64)


def _weight(rtt_ms: float) -> float | None:
    # What is no time is no measure. Nothing may give a weight that is zero, endless or below the fastest.
    if not math.isfinite(rtt_ms) or rtt_ms < 0:
        return None
    return 1 / (rtt_ms + SOFTENING_MS)
