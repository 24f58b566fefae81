"""When the garbage collector may stop the loop.

Left alone it walks whenever so many objects were made, which is in the middle of the longest turns. A full
walk takes some 50 ms where 500 requests are under way. So young objects are walked in turns of their own,
and everything only while nobody waits, or at last for a node that never rests.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Final

from relaydesk.core.ports import Clock

STEP_S: Final = 0.25
# New objects that are worth a walk, and such walks before those that outlived one are walked with them.
YOUNG: Final = 1_000
MIDDLE: Final = 3
# Seconds from one full walk to the next: at rest, and where requests are always under way.
REST_S: Final = 5.0
BUSY_S: Final = 120.0
# Python's own: for what makes a great many objects in one turn.
THRESHOLDS: Final = (10_000, 10, 1_000)


class Collector:
    """Collects in turns of its own; run it as a service. ``at_rest`` says whether nothing is under way."""

    name = "garbage collector"

    def __init__(self, clock: Clock, at_rest: Callable[[], bool]) -> None:
        self._clock = clock
        self._at_rest = at_rest

    async def run(self) -> None:
        """Run until cancelled; then everything is as it was."""
        before = gc.get_threshold()
        # What lives as long as the process need not be walked again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        self._full_at = self._clock.mono()
        try:
            while True:
                await asyncio.sleep(STEP_S)
                self._step()
        finally:
            gc.set_threshold(*before)
            gc.unfreeze()

    def _step(self) -> None:
        young, middle, old = gc.get_count()
        if young > YOUNG:
            gc.collect(1 if middle >= MIDDLE else 0)
        elif old and self._clock.mono() - self._full_at > (REST_S if self._at_rest() else BUSY_S):
            gc.collect()
            self._full_at = self._clock.mono()
