"""Waiting for a slot of one loaded engine: first come, first served, and never more than a bound wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.pool.slots import Slot, SlotTable


class SlotQueue:
    """The slots of one engine and those who wait for one.

    ``limit`` is asked when it matters; ``changed`` is called when a slot or the queue moves.
    """

    def __init__(self, slots: int, limit: Callable[[], int], changed: Callable[[], None]) -> None:
        self._table = SlotTable(slots)
        self._limit = limit
        self._changed = changed
        self._waiting: deque[tuple[str, asyncio.Future[Slot]]] = deque()
        self._ended: Fault | None = None

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
        """Hold a slot. Raises `PeerError`: ``queue_full`` where too many wait already, or why it ended."""
        taken = await self._acquire(key)
        try:
            yield taken
        finally:
            self._release(taken.number)

    def end(self, fault: Fault) -> None:
        """The engine is gone: whoever waits, or comes later, is refused with ``fault``."""
        self._ended = fault
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(_error(fault))
        self._changed()

    async def _acquire(self, key: str) -> Slot:
        if self._ended is not None:
            raise _error(self._ended)
        if not self._waiting:
            taken = self._table.take(key)
            if taken is not None:
                self._changed()
                return taken
        if len(self._waiting) >= self._limit():
            raise queue_full(self._limit())
        future: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        entry = (key, future)
        self._waiting.append(entry)
        self._changed()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                # The slot was handed over in the same moment: pass it on, or it is lost for good.
                self._release(future.result().number)
            elif entry in self._waiting:
                # Not there any more where a release came by between the cancellation and this line.
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


def queue_full(limit: int) -> PeerError:
    """The refusal of a request that would wait behind ``limit`` others."""
    return PeerError(
        "queue_full",
        f"{limit} requests wait for this model already",
        "try again in a few seconds",
        retry_after=5,
    )


def _error(fault: Fault) -> PeerError:
    return PeerError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
