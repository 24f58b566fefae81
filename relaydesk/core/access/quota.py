"""One key's quota: what it may begin, what is set aside for it, what it has used. Pure.

Every route asks here before any work and settles here after it, so that there is one way to spend tokens.
What a request may cost at most is set aside when it begins; when it ends, what it produced is charged and
the rest is given back. So no burst can use more than the limit: ``used + reserved`` never exceeds it.

A request counts for the day (UTC) on which it was admitted, however long it runs.
"""

from __future__ import annotations

from collections import deque
from math import ceil
from typing import Final

import msgspec

from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.errors import PeerError

WINDOW_S: Final = 60.0
DAY_MS: Final = 86_400_000
# Days whose use is at hand: a clock that is set back finds what was used on the day that it is again.
_KEPT_DAYS: Final = 32


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a request may cost. ``prompt`` is an upper bound of its tokens, no model needed.

    ``limit`` is the most tokens that one choice may have: the client's own, else the model's context.
    """

    prompt: int
    limit: int
    choices: int = 1


class Grant(msgspec.Struct):
    """What was set aside for one request. ``open`` until it is settled.

    ``recount`` says that the bound was too much and the prompt has to be counted before it is read;
    ``limit`` is the most tokens each choice may have, None where the request's own stands.
    """

    day: int
    reserved: int
    choices: int
    recount: bool = False
    limit: int | None = None
    open: bool = True
    started: float = 0.0


class Standing(msgspec.Struct, frozen=True):
    """How a key stands. Tokens are of today; ``minute_left`` and ``tokens_left`` None without a limit.

    ``minute_reset_s`` is when the oldest request of the window leaves it, ``day_reset_s`` the time to
    midnight UTC, both in seconds.
    """

    used: int
    reserved: int
    running: int
    tokens_left: int | None
    minute_used: int
    minute_left: int | None
    minute_reset_s: float
    day_reset_s: float


def day_of(wall_ms: int) -> int:
    """The number of a day since 1970 in UTC: the quota's time zone."""
    return wall_ms // DAY_MS


def renewal(wall_ms: int) -> str:
    """When what is counted by day begins anew, for people."""
    hours, minutes = divmod((DAY_MS - wall_ms % DAY_MS) // 60_000, 60)
    return f"they are new at 00:00 UTC, in {hours} h {minutes} min"


def note_day(days: dict[int, int], day: int, amount: int) -> None:
    """Add ``amount`` to a day of ``days``, of which a bounded number is kept."""
    if amount:
        # The oldest goes, not what lies behind this day: a clock that was ahead is set back some time.
        while len(days) >= _KEPT_DAYS and day not in days:
            del days[min(days)]
        days[day] = days.get(day, 0) + amount


class KeyQuota:
    """The books of one key. ``used`` has what was settled, by day."""

    __slots__ = ("_reserved", "_starts", "limits", "running", "used")

    def __init__(self, limits: KeyLimits, used: dict[int, int] | None = None) -> None:
        self.limits = limits
        self.used = dict(used or {})
        self.running = 0
        self._reserved: dict[int, int] = {}
        self._starts: deque[float] = deque()

    def admit(self, ask: Ask, now: float, wall_ms: int) -> Grant:
        """Begin a request, or refuse it. ``now`` is monotonic, in seconds.

        Raises `PeerError`: ``concurrency_exceeded``, ``requests_per_minute_exceeded`` or
        ``tokens_per_day_exceeded``. A refusal changes nothing.
        """
        limits = self.limits
        if limits.max_concurrency and self.running >= limits.max_concurrency:
            raise PeerError(
                "concurrency_exceeded",
                f"this key may run {_count(limits.max_concurrency, 'request')} at once",
                "wait until one of them has ended",
                retry_after=1,
            )
        if limits.requests_per_minute:
            self._forget(now)
            if len(self._starts) >= limits.requests_per_minute:
                # Where the limit was lowered, more than one has to leave the window first.
                first = self._starts[len(self._starts) - limits.requests_per_minute]
                wait = max(1, ceil(first + WINDOW_S - now))
                raise PeerError(
                    "requests_per_minute_exceeded",
                    f"this key may send {_count(limits.requests_per_minute, 'request')} in 60 seconds",
                    f"try again in {wait} s",
                    retry_after=wait,
                )
        day = day_of(wall_ms)
        grant = self._reserve(ask, day, wall_ms)
        grant.started = now
        self.running += 1
        if limits.requests_per_minute:
            self._starts.append(now)
        self._reserved[day] = self._reserved.get(day, 0) + grant.reserved
        return grant

    def recount(self, grant: Grant, prompt: int, wall_ms: int) -> int:
        """The exact ``prompt`` of a request whose bound was too much; returns what each choice may have.

        Raises `PeerError` ``tokens_per_day_exceeded`` where not one token an answer is left; nothing is
        charged then, and the caller settles with 0.
        """
        limits = self.limits
        if not limits.tokens_per_day:
            grant.recount, grant.limit = False, None
            return 2**31 - 1
        room = self._left(grant.day) + grant.reserved
        each = (room - prompt) // grant.choices
        if each < 1:
            if grant.started in self._starts:
                self._starts.remove(grant.started)  # a refusal costs nothing of any limit
            raise self._day_over(wall_ms)
        reserved = prompt + each * grant.choices
        self._reserved[grant.day] += reserved - grant.reserved
        grant.reserved, grant.limit, grant.recount = reserved, each, False
        return each

    def settle(self, grant: Grant, tokens: int) -> None:
        """End a request that used ``tokens``, prompt and answers. The second time does nothing."""
        if not grant.open:
            return
        grant.open = False
        self.running -= 1
        self._reserved[grant.day] -= grant.reserved
        if not self._reserved[grant.day]:
            del self._reserved[grant.day]
        note_day(self.used, grant.day, tokens)

    def reserved(self, day: int) -> int:
        """What is set aside for requests of that day which still run."""
        return self._reserved.get(day, 0)

    def standing(self, now: float, wall_ms: int) -> Standing:
        """How the key stands now."""
        limits, day = self.limits, day_of(wall_ms)
        self._forget(now)
        minute = len(self._starts)
        return Standing(
            used=self.used.get(day, 0),
            reserved=self.reserved(day),
            running=self.running,
            tokens_left=max(0, self._left(day)) if limits.tokens_per_day else None,
            minute_used=minute,
            minute_left=max(0, limits.requests_per_minute - minute) if limits.requests_per_minute else None,
            minute_reset_s=max(0.0, self._starts[0] + WINDOW_S - now) if self._starts else 0.0,
            day_reset_s=(DAY_MS - wall_ms % DAY_MS) / 1000,
        )

    def _reserve(self, ask: Ask, day: int, wall_ms: int) -> Grant:
        bound = ask.prompt + ask.choices * ask.limit
        if not self.limits.tokens_per_day:
            return Grant(day, bound, ask.choices)
        left = self._left(day)
        if bound <= left:
            return Grant(day, bound, ask.choices)
        least = 1 + ask.choices  # a prompt of one token, and one token each
        if left < least:
            if self.limits.tokens_per_day - self.used.get(day, 0) >= least:
                raise PeerError(
                    "concurrency_exceeded",
                    "the rest of this key's tokens of the day is set aside for its running requests",
                    "try again when one of them has ended",
                    retry_after=2,
                )
            raise self._day_over(wall_ms)
        return Grant(day, left, ask.choices, recount=True)

    def _left(self, day: int) -> int:
        return self.limits.tokens_per_day - self.used.get(day, 0) - self._reserved.get(day, 0)

    def _forget(self, now: float) -> None:
        starts = self._starts
        while starts and starts[0] + WINDOW_S <= now:
            starts.popleft()

    def _day_over(self, wall_ms: int) -> PeerError:
        return PeerError(
            "tokens_per_day_exceeded",
            f"this key has used its {self.limits.tokens_per_day} tokens of the day, or what is left of "
            "them is too little for this request",
            renewal(wall_ms),
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
