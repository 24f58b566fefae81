"""How often something may happen: a bucket that fills steadily."""

from __future__ import annotations

from relaydesk.core.ports import Clock


class Bucket:
    """At most ``burst`` at once and ``per_s`` a second in the long run."""

    __slots__ = ("_burst", "_clock", "_level", "_per_s", "_since")

    def __init__(self, per_s: float, burst: int, clock: Clock) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._level = float(burst)
        self._since = clock.mono()

    def take(self) -> bool:
        """Whether one more may happen now."""
        now = self._clock.mono()
        self._level = min(float(self._burst), self._level + (now - self._since) * self._per_s)
        self._since = now
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True
