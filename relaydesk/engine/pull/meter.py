"""Counts the bytes of one pull and tells a listener, not too often."""

from __future__ import annotations

from collections import deque
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.engine.pull.pulled import OnProgress, Progress, Stage

PERIOD_S: Final = 0.2  # between two reports of the same stage
WINDOW_S: Final = 5.0  # over which the rate is taken


class Meter:
    """One pull's progress. Called on the loop only."""

    def __init__(self, clock: Clock, on_progress: OnProgress, *, resumable: bool) -> None:
        self._clock = clock
        self._tell = on_progress
        self._resumable = resumable
        self._stage: Stage = "asking"
        self._done = 0
        self._total = 0
        self._seen: deque[tuple[float, int]] = deque()
        self._told_at = float("-inf")

    def start(self, stage: Stage, total: int = 0, done: int = 0) -> None:
        """Enter a stage; ``done`` bytes of it are there already and count in no rate."""
        self._stage, self._total, self._done = stage, total, done
        self._seen.clear()
        self._seen.append((self._clock.mono(), done))
        self._report(self._clock.mono())

    def at(self, done: int) -> None:
        """The stage's byte count is now ``done``; it may fall where a download starts over."""
        now = self._clock.mono()
        if done < self._done:
            self._seen.clear()
        self._done = done
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        if now - self._told_at >= PERIOD_S or done == self._total:
            self._report(now)

    def add(self, count: int) -> None:
        """``count`` more bytes (fewer, if negative)."""
        self.at(self._done + count)

    def _report(self, now: float) -> None:
        self._told_at = now
        since, from_bytes = self._seen[0]
        rate = (self._done - from_bytes) / (now - since) if now > since else 0.0
        self._tell(Progress(self._stage, self._done, self._total, max(rate, 0.0), self._resumable))
