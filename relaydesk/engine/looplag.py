"""How late the loop is: ten samples a second over the last ten seconds.

A sample is how long a timer overslept. It is the time in which nothing else was served, so the console
shows it, and round-trip times measured during a stall are not to be believed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from relaydesk.core.ports import Clock

INTERVAL_S: Final = 0.1
WINDOW: Final = 100


@dataclass(frozen=True, slots=True)
class Lag:
    """Loop lag in milliseconds over the window; zeros before the first sample."""

    p50_ms: float
    p99_ms: float
    max_ms: float


class LoopLag:
    """The gauge; run it as a service."""

    name = "loop lag gauge"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[float] = deque(maxlen=WINDOW)
        self._ends: deque[float] = deque(maxlen=WINDOW)
        self._due: float | None = None

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            self._due = self._clock.mono() + INTERVAL_S
            await asyncio.sleep(INTERVAL_S)
            now = self._clock.mono()
            self._samples.append(max(0.0, now - self._due) * 1000)
            self._ends.append(now)

    def worst_since(self, mono: float) -> float:
        """The longest stall in ms since that moment of the clock, the one that still lasts included.

        A stall that begins and ends between two samples is not seen.
        """
        found = [lag for lag, end in zip(self._samples, self._ends, strict=True) if end >= mono]
        if self._due is not None:
            found.append(max(0.0, self._clock.mono() - self._due) * 1000)
        return max(found, default=0.0)

    def lag(self) -> Lag:
        """The window's median, 99th percentile and maximum."""
        if not self._samples:
            return Lag(0.0, 0.0, 0.0)
        ordered = sorted(self._samples)
        last = len(ordered) - 1
        return Lag(round(ordered[last // 2], 2), round(ordered[int(last * 0.99)], 2), round(ordered[last], 2))
