"""The gauges: read once a second for fronts, and the memory of engines every five."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import psutil

from relaydesk.core.events import HealthSampled, WorkerChanged
from relaydesk.core.view.sections import HealthView
from relaydesk.engine.bus import Bus
from relaydesk.engine.gateway.journal import Journal
from relaydesk.engine.looplag import LoopLag
from relaydesk.engine.pool.pool import Pool

_log: Final = logging.getLogger(__name__)

INTERVAL_S: Final = 1.0
MEMORY_EVERY: Final = 5


class Health:
    """The node's own condition; run it as a service."""

    name = "health gauges"

    def __init__(self, journal: Journal, lag: LoopLag, pool: Pool, bus: Bus) -> None:
        self._journal = journal
        self._lag = lag
        self._pool = pool
        self._bus = bus
        self._process = psutil.Process()
        self._last: HealthView | None = None

    async def run(self) -> None:
        """Sample until cancelled."""
        count = 0
        while True:
            view = self.view()
            if view != self._last:
                self._last = view
                self._bus.publish(HealthSampled())
            if count % MEMORY_EVERY == 0:
                await self._read_engines()
            count += 1
            await asyncio.sleep(INTERVAL_S)

    def view(self) -> HealthView:
        """The gauges now."""
        lag = self._lag.lag()
        running, waiting = self._journal.standing()
        return HealthView(
            in_flight=running,
            queued=waiting,
            tokens_per_s=self._journal.tokens_per_s(),
            loop_lag_p50_ms=lag.p50_ms,
            loop_lag_p99_ms=lag.p99_ms,
            loop_lag_max_ms=lag.max_ms,
            rss_mb=self._process.memory_info().rss // 1_048_576,
            requests_total=self._journal.requests_total,
            tokens_total=self._journal.tokens_total,
        )

    async def _read_engines(self) -> None:
        for runner in self._pool.runners():
            running = runner.running
            if running is None:
                continue
            memory_mb = await running.memory_mb()
            if memory_mb != runner.memory_mb:
                runner.memory_mb = memory_mb
                self._bus.publish(WorkerChanged(runner.name))
