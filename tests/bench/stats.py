"""What is said of a handful of measurements: least, median, greatest, and pairs compared one by one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

import msgspec


class Spread(msgspec.Struct, frozen=True):
    """Least, median and greatest of ``count`` values."""

    least: float
    median: float
    greatest: float
    count: int


def spread(values: Iterable[float]) -> Spread:
    """The spread of ``values``. Raises `ValueError` for none or for what is no number."""
    known = list(values)
    if not known:
        raise ValueError("nothing was measured")
    if any(not math.isfinite(value) for value in known):
        raise ValueError("a measurement is not a finite number")
    return Spread(min(known), statistics.median(known), max(known), len(known))


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the least value that at least ``share`` (0 to 1) of them do not exceed.

    Never between two values: a tail is something that happened.
    """
    if not values:
        raise ValueError("nothing was measured")
    if not 0 < share <= 1:
        raise ValueError("a share is above 0 and at most 1")
    return sorted(values)[math.ceil(share * len(values)) - 1]


def ratios(baseline: Sequence[float], measured: Sequence[float]) -> list[float]:
    """``measured`` over ``baseline``, pair by pair: what slowed both of a pair cancels out."""
    return [b / a for a, b in _pairs(baseline, measured)]


def differences(baseline: Sequence[float], measured: Sequence[float]) -> list[float]:
    """``measured`` less ``baseline``, pair by pair."""
    return [b - a for a, b in _pairs(baseline, measured)]


def _pairs(baseline: Sequence[float], measured: Sequence[float]) -> list[tuple[float, float]]:
    if len(baseline) != len(measured):
        raise ValueError("each measurement needs its baseline")
    return list(zip(baseline, measured, strict=True))
