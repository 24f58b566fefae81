"""The right to ask a loaded engine, for as long as one request lasts."""

from __future__ import annotations

import asyncio
from typing import Final

from relaydesk.core.errors import Fault
from relaydesk.engine.infer.engine import Engine
from relaydesk.engine.pool.slot_queue import SlotQueue
from relaydesk.engine.pool.starter import RunningEngine

# Between a connection that breaks and the news that its process is gone.
_NEWS_S: Final = 0.3


class Lease:
    """One request's hold on an engine: while it is held the engine is not unloaded.

    ``fault`` is set where the engine ended under it: that says more than a broken connection does.
    """

    def __init__(self, run: int, running: RunningEngine, slots: SlotQueue) -> None:
        self.run = run
        self.slots = slots
        self.fault: Fault | None = None
        self._running = running
        self._told = asyncio.Event()

    @property
    def engine(self) -> Engine:
        """Whom to ask."""
        return self._running.engine

    @property
    def alias(self) -> str:
        """The name the engine knows the model by."""
        return self._running.alias

    @property
    def extensions(self) -> bool:
        """Whether it takes llama.cpp's fields beside OpenAI's."""
        return self._running.extensions

    def end(self, fault: Fault) -> None:
        """The engine has ended, or is about to: answers still running end with ``fault``."""
        if self.fault is None:
            self.fault = fault
            self._told.set()

    async def why(self, fault: Fault) -> Fault:
        """The reason behind a fault seen on this engine's connection."""
        if fault.code != "engine_failed":
            return fault
        if self.fault is None and self._running.exited is not None:
            try:
                async with asyncio.timeout(_NEWS_S):
                    await self._told.wait()
            except TimeoutError:
                pass
        return self.fault or fault
