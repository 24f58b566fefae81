"""Waiting for a slot of one loaded engine: first come, first served, and never more than a bound wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from relaydesk.core.errors import PeerError
from relaydesk.core.pool.slots import Slot, SlotTable


class SlotQueue:
    """The slots of one engine and those who wait for one. ``changed`` is called when either moves."""

    def __init__(self, slots: int, limit: int, changed: Callable[[], None]) -> None:
        self._table = SlotTable(slots)
        self._limit = limit
        self._changed = changed
        self._waiting: deque[tuple[str, asyncio.Future[Slot]]] = deque()

    @property
    def busy(self) -> int:
        """Slots taken."""
        return self._table.busy

    @property
    def count(self) -> int:
        """Slots there are."""
        return self._table.count

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def slot(self, key: str) -> AsyncIterator[Slot]:
        """Hold a slot. Raises `PeerError` ``queue_full`` where too many wait already."""
        taken = await self._acquire(key)
        try:
            yield taken
        finally:
            self._release(taken.number)

    async def _acquire(self, key: str) -> Slot:
        if not self._waiting:
            taken = self._table.take(key)
            if taken is not None:
                self._changed()
                return taken
        if len(self._waiting) >= self._limit:
            raise PeerError(
                "queue_full",
                f"{self._limit} requests wait for this model already",
                "try again in a few seconds",
                retry_after=5,
            )
        future: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        entry = (key, future)
        self._waiting.append(entry)
        self._changed()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                # The slot was handed over in the same moment: pass it on, or it is lost for good.
                self._release(future.result().number)
            else:
                self._waiting.remove(entry)
                self._changed()
            raise

    def _release(self, index: int) -> None:
        self._table.give(index)
        while self._waiting:
            key, future = self._waiting[0]
            if future.done():
                self._waiting.popleft()
                continue
            taken = self._table.take(key)
            if taken is None:
                break
            self._waiting.popleft()
            future.set_result(taken)
        self._changed()
