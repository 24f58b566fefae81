"""When a caller tries again (wire §2.5).

Inner attempts go to one candidate, each through another relay; sweeps go over the whole list of candidates.
All times are milliseconds.
"""

from __future__ import annotations

import re
from typing import Final

INNER_ATTEMPTS: Final = 3
INNER_DELAYS_MS: Final = (0, 500, 1500)
SWEEPS: Final = 4
SWEEP_DELAYS_MS: Final = (0, 4_000, 12_000, 30_000)
OVERALL_MS: Final = 60_000
# Said beside ``operators_unreachable``, in seconds: a node that restarts is back by then (ours, wire §8.4).
RESTART_S: Final = 60

_SECONDS: Final = re.compile(r"[0-9]{1,9}")


def inner_delay_ms(attempt: int) -> int:
    """What to wait before an attempt at one candidate, counted from 0."""
    return _at(INNER_DELAYS_MS, attempt)


def sweep_delay_ms(sweep: int) -> int:
    """What to wait before a sweep, counted from 0."""
    return _at(SWEEP_DELAYS_MS, sweep)


def wait(scheduled_ms: int, retry_after_ms: int, remaining_ms: int) -> int | None:
    """How long to wait now: the table's time or the other side's, whichever is longer.

    None where the rest of the budget does not reach past it: then the caller stops at once.
    """
    delay = max(scheduled_ms, retry_after_ms)
    return None if remaining_ms <= 0 or delay >= remaining_ms else delay


def retry_after_ms(header: str | None) -> int:
    """The time in a ``Retry-After`` of whole seconds, 0 where it is absent, a date or nonsense.

    A date is no wish of a node: none sends one, and clocks differ.
    """
    text = (header or "").strip(" \t")
    return int(text) * 1000 if _SECONDS.fullmatch(text) else 0


def may_sweep(*, all_transient: bool, refused: bool, paid: bool) -> bool:
    """Whether another sweep may follow one that got nothing.

    Only where every candidate failed in a way that may pass, none ``refused`` after a look at the request,
    and escrow is not open.
    """
    return all_transient and not refused and not paid


def _at(delays: tuple[int, ...], index: int) -> int:
    return delays[min(max(index, 0), len(delays) - 1)]
