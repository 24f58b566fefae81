"""When a certificate from elsewhere is renewed, and how long to wait after a try that failed.

Authorities count: Let's Encrypt allows five failed validations an hour for each name and five equal
certificates a week. So every wait grows, has a bound, and outlives a restart.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

# Clocks that differ by less are called right: authorities date certificates back by as much.
CLOCK_TOLERANCE_S: Final = 3600.0
FIRST_PAUSE_S: Final = 60.0
LONGEST_PAUSE_S: Final = 6 * 3600.0
# A server may ask for more patience than we would have, but not for a week's silence.
LONGEST_ASKED_S: Final = 24 * 3600.0
# How soon after a failed try a new start may try again, however long the wait had grown.
RESTART_PAUSE_S: Final = 300.0
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE: Final = re.compile(
    r"[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)


class Age(Enum):
    """What a certificate is worth now. EARLY: not valid yet, by more than clocks differ."""

    EARLY = "early"
    GOOD = "good"
    DUE = "due"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Life:
    """From when to when a certificate is valid, both in UTC."""

    start: dt.datetime
    end: dt.datetime

    @property
    def length_s(self) -> float:
        return (self.end - self.start).total_seconds()

    def left_s(self, now: dt.datetime) -> float:
        """Seconds of validity left; negative once it is over."""
        return (self.end - now).total_seconds()

    def age(self, now: dt.datetime) -> Age:
        """DUE with a third of its life left or less."""
        if (self.start - now).total_seconds() > CLOCK_TOLERANCE_S:
            return Age.EARLY
        if self.left_s(now) <= 0:
            return Age.OVER
        return Age.DUE if self.due_s(now) <= 0 else Age.GOOD

    def due_s(self, now: dt.datetime) -> float:
        """Seconds until a third of its life is left; negative after that."""
        return self.left_s(now) - self.length_s / 3


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries that failed since the last one that worked, in wall-clock milliseconds.

    ``asked_ms`` is the time before which the server wants to hear nothing; 0 where it named none. ``plan``
    stands for the settings that were tried.
    """

    failures: int = 0
    tried_ms: int = 0
    next_ms: int = 0
    asked_ms: int = 0
    plan: str = ""


def pause_s(
    failures: int, draw: float, *, asked_s: float | None = None, left_s: float | None = None
) -> float:
    """Seconds to wait after the ``failures``-th failure in a row (from 1).

    It doubles from a minute to six hours; ``draw`` in [0, 1) takes up to half of it away, so that many hubs
    do not come back together. The less validity is left (``left_s``), the sooner: a tenth of it, but never
    sooner than the first pause. What the server ``asked`` for is the least, up to a day.
    """
    grown = min(FIRST_PAUSE_S * 2.0 ** min(max(failures, 1) - 1, 16), LONGEST_PAUSE_S)
    if left_s is not None and left_s > 0:
        grown = max(FIRST_PAUSE_S, min(grown, left_s / 10))
    grown *= 1 - draw / 2
    return max(grown, min(asked_s or 0.0, LONGEST_ASKED_S))


def start_wait_s(tries: Tries, now_ms: int, plan: str) -> float:
    """Seconds that a node which starts now still waits, by what an earlier run left behind.

    A restart is how people say "try again", so five minutes after the last try are enough; a node that
    crashes and starts over does not use up an authority's patience. Changed settings are tried at once.
    What a server asked for holds in any case. Times in the future are a clock that was set back since.
    """
    if tries.failures == 0 or tries.tried_ms > now_ms:
        return 0.0
    changed = tries.plan != plan
    own = 0 if changed else min(tries.next_ms, tries.tried_ms + round(RESTART_PAUSE_S * 1000))
    wait = max(own, tries.asked_ms) - now_ms
    return min(max(wait / 1000, 0.0), LONGEST_ASKED_S)


def retry_after_s(text: str, now: dt.datetime) -> float | None:
    """Seconds that a ``Retry-After`` header means (RFC 9110 §10.2.3); None where it means nothing."""
    cleaned = text.strip()
    if cleaned.isascii() and cleaned.isdigit():
        return float(cleaned[:12])
    when = http_date(cleaned)
    return None if when is None else max(0.0, (when - now).total_seconds())


def clock_error_s(date: str, now: dt.datetime) -> float:
    """How far ``now`` is ahead of a server's ``Date`` header in seconds; 0 within the tolerance."""
    theirs = http_date(date)
    ahead = 0.0 if theirs is None else (now - theirs).total_seconds()
    return ahead if abs(ahead) > CLOCK_TOLERANCE_S else 0.0


def http_date(text: str) -> dt.datetime | None:
    """The time in an HTTP date (RFC 9110 §5.6.7, the form that servers send), or None."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return None
    day, month, year, hour, minute, second = found.groups()
    try:
        # A leap second is not worth an error.
        clock = (int(hour), int(minute), min(int(second), 59))
        return dt.datetime(int(year), _MONTHS.index(month) + 1, int(day), *clock, tzinfo=dt.UTC)
    except ValueError:
        return None
