"""Refusals of a spent quota that come again and again are told now and then: one key could fill a disk."""

from __future__ import annotations

from typing import Final

from relaydesk.core.ports import Clock

EVERY_S: Final = 10.0
_CODES: Final = frozenset({"tokens_per_day_exceeded", "requests_per_minute_exceeded", "concurrency_exceeded"})
_MOST: Final = 10_000


class Repeats:
    """Tells the first of a key's refusals of one kind, then one in `EVERY_S` seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}
        self._untold: dict[tuple[str, str], int] = {}

    def again(self, key: str, code: str) -> bool:
        """Whether this one is not to be told. What is no refusal of a quota always is."""
        if code not in _CODES:
            return False
        kind, now = (key, code), self._clock.mono()
        if now - self._told.get(kind, -EVERY_S) < EVERY_S:
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return True
        if len(self._told) >= _MOST:
            self._told.clear()
        self._told[kind] = now
        return False

    def untold(self, key: str, code: str) -> int:
        """How many of the kind went untold before the one that is told now; they are forgotten with it."""
        return self._untold.pop((key, code), 0)
