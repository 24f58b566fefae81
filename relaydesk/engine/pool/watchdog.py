"""Engines that hang: alive as a process, and answering nothing.

An engine's health route is served beside its work, so it answers within milliseconds however busy the engine
is. One that fails it three times in a row, while somebody waits for it, is ended; its streams get an error
and it is started again by the ordinary rule for engines that die.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from relaydesk.engine.pool.pool import Pool

_log: Final = logging.getLogger(__name__)

INTERVAL_S: Final = 5.0
FAILURES: Final = 3


class Watchdog:
    """Looks after the engines that have work; run it as a service."""

    name = "engine watchdog"

    def __init__(self, pool: Pool, interval_s: float = INTERVAL_S) -> None:
        self._pool = pool
        self._interval_s = interval_s
        self._failures: dict[int, int] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.look()

    async def look(self) -> None:
        """Ask every engine that has work how it is, and end those that have not answered for too long."""
        busy = {
            running.pid: (runner.name, running)
            for runner in self._pool.runners()
            if (running := runner.running) is not None and running.pid and runner.slots and runner.slots.busy
        }
        healthy = await asyncio.gather(*(running.engine.health() for _, running in busy.values()))
        failures: dict[int, int] = {}
        for (pid, (name, running)), well in zip(busy.items(), healthy, strict=True):
            if well:
                continue
            failures[pid] = self._failures.get(pid, 0) + 1
            if failures[pid] >= FAILURES:
                _log.error("the engine of %s (pid %d) has stopped answering and is ended", name, pid)
                running.kill()
        self._failures = failures
