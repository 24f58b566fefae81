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

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            before = self._clock.mono()
            await asyncio.sleep(INTERVAL_S)
            self._samples.append(max(0.0, self._clock.mono() - before - INTERVAL_S) * 1000)

    def lag(self) -> Lag:
        """The window's median, 99th percentile and maximum."""
        if not self._samples:
            return Lag(0.0, 0.0, 0.0)
        ordered = sorted(self._samples)
        last = len(ordered) - 1
        return Lag(round(ordered[last // 2], 2), round(ordered[int(last * 0.99)], 2), round(ordered[last], 2))
