"""Waiting for a slot of one loaded engine: first come, first served, and never more than a bound wait.

Strangers, who come over the relay network, wait apart: whatever they wait for, the household comes first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.pool.slots import Slot, SlotTable, idle_for_strangers, stranger_may_take


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
        self._strangers: deque[tuple[int, asyncio.Future[Slot]]] = deque()
        self._lent: set[int] = set()

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
        """Requests of the household that wait."""
        return len(self._waiting)

    @property
    def lent(self) -> int:
        """Slots that strangers hold."""
        return len(self._lent)

    def room_for_stranger(self, most: int) -> bool:
        """Whether a stranger would get a slot now, if at most ``most`` strangers may hold one."""
        return (
            self._ended is None
            and not self._strangers
            and stranger_may_take(
                free=self._table.free, held=len(self._lent), most=most, waiting=len(self._waiting)
            )
        )

    def idle_for_strangers(self, most: int) -> int:
        """How many strangers would get a slot now, if at most ``most`` of them may hold one."""
        if self._ended is not None or self._strangers:
            return 0
        return idle_for_strangers(
            free=self._table.free, held=len(self._lent), most=most, waiting=len(self._waiting)
        )

    @asynccontextmanager
    async def stranger(self, most: int, wait_s: float) -> AsyncIterator[Slot]:
        """Hold a slot as a stranger; its cache is never another's.

        Raises `PeerError` ``queue_full`` where none was to be had within ``wait_s`` seconds, or why the
        engine ended.
        """
        taken = await self._acquire_as_stranger(most, wait_s)
        self._lent.add(taken.number)
        try:
            yield taken
        finally:
            self._lent.discard(taken.number)
            self._release(taken.number)

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
        waiting = [future for _, future in (*self._waiting, *self._strangers)]
        self._waiting.clear()
        self._strangers.clear()
        for future in waiting:
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
                self._release_to_strangers()
                self._changed()
            raise

    async def _acquire_as_stranger(self, most: int, wait_s: float) -> Slot:
        if self._ended is not None:
            raise _error(self._ended)
        if self.room_for_stranger(most) and (taken := self._table.take("")) is not None:
            self._changed()
            return taken
        future: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        entry = (most, future)
        self._strangers.append(entry)
        try:
            async with asyncio.timeout(wait_s):
                return await future
        except (asyncio.CancelledError, TimeoutError) as error:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._lent.discard(future.result().number)
                self._release(future.result().number)
            elif entry in self._strangers:
                self._strangers.remove(entry)
            if isinstance(error, TimeoutError):
                raise queue_full(len(self._strangers)) from None
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
        self._release_to_strangers()
        self._changed()

    def _release_to_strangers(self) -> None:
        while self._strangers:
            most, future = self._strangers[0]
            if future.done():
                self._strangers.popleft()
                continue
            may = stranger_may_take(
                free=self._table.free, held=len(self._lent), most=most, waiting=len(self._waiting)
            )
            taken = self._table.take("") if may else None
            if taken is None:
                break
            self._strangers.popleft()
            # Before its task runs, so that no second one is let in on the same count.
            self._lent.add(taken.number)
            future.set_result(taken)


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
