from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.pool.slots import Slot
from relaydesk.engine.pool.slot_queue import SlotQueue
from tests.support.jump_loop import run

GONE = Fault("engine_failed", "the engine ended")


class Users:
    """Requests that hold a slot until they are told to leave."""

    def __init__(self, slots: int = 1, limit: int = 100) -> None:
        self.limit = limit
        self.moves = 0
        self.queue = SlotQueue(slots, lambda: self.limit, self._moved)
        self.order: list[int] = []
        self.slots: dict[int, Slot] = {}
        self.leave: list[asyncio.Event] = []
        self.tasks: list[asyncio.Task[None]] = []

    def _moved(self) -> None:
        self.moves += 1

    def come(self, key: str = "ann") -> int:
        number = len(self.tasks)
        self.leave.append(asyncio.Event())
        self.tasks.append(asyncio.create_task(self._use(number, key)))
        return number

    async def _use(self, number: int, key: str) -> None:
        async with self.queue.slot(key) as slot:
            assert slot not in self.slots.values()
            self.order.append(number)
            self.slots[number] = slot
            try:
                await self.leave[number].wait()
            finally:
                del self.slots[number]

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_first_come_first_served() -> None:
    users = Users(slots=2)
    for _ in range(5):
        users.come()
    await users.settle()
    assert (users.queue.busy, users.queue.waiting, users.queue.count) == (2, 3, 2)
    for number in (1, 0, 2, 3, 4):
        users.leave[number].set()
        await users.settle()
    await asyncio.gather(*users.tasks)
    assert users.order == [0, 1, 2, 3, 4]
    assert (users.queue.busy, users.queue.waiting) == (0, 0)


async def test_no_more_wait_than_the_limit_which_may_change() -> None:
    users = Users(limit=1)
    users.come()
    users.come()
    refused = users.come()
    await users.settle()
    with pytest.raises(PeerError) as caught:
        await users.tasks[refused]
    assert caught.value.fault.code == "queue_full"
    assert caught.value.fault.retry_after == 5
    users.limit = 2
    users.come()
    await users.settle()
    assert users.queue.waiting == 2
    for leave in users.leave:
        leave.set()
    await asyncio.gather(*users.tasks, return_exceptions=True)


async def test_one_who_left_is_passed_over() -> None:
    users = Users()
    for _ in range(3):
        users.come()
    await users.settle()
    users.tasks[1].cancel()
    await users.settle()
    assert users.queue.waiting == 1
    users.leave[0].set()
    await users.settle()
    assert users.order == [0, 2]
    users.leave[2].set()
    await asyncio.gather(*users.tasks, return_exceptions=True)
    assert users.queue.busy == 0


async def test_leaving_in_the_moment_of_a_release_is_leaving() -> None:
    """Cancelled, but not run since: the release finds its place in the queue and takes it out."""
    users = Users()
    users.come()
    users.come()
    await users.settle()
    users.leave[0].set()
    users.tasks[1].cancel()
    await asyncio.wait(users.tasks)
    assert users.tasks[1].cancelled()
    assert (users.queue.busy, users.queue.waiting) == (0, 0)


async def test_a_slot_handed_to_one_who_leaves_goes_on_to_the_next() -> None:
    users = Users()
    for _ in range(3):
        users.come()
    await users.settle()
    users.leave[0].set()
    while users.queue.waiting == 2:
        await asyncio.sleep(0)
    users.tasks[1].cancel()  # it has the slot, and has not run since
    await users.settle()
    assert users.tasks[1].cancelled()
    assert users.order == [0, 2]
    users.leave[2].set()
    await asyncio.gather(*users.tasks, return_exceptions=True)
    assert users.queue.busy == 0


async def test_the_end_of_an_engine_refuses_who_waits_and_who_comes_later() -> None:
    users = Users()
    holder, waiter, leaver = users.come(), users.come(), users.come()
    await users.settle()
    users.tasks[leaver].cancel()
    users.queue.end(GONE)
    with pytest.raises(PeerError) as caught:
        await users.tasks[waiter]
    assert caught.value.fault.message == GONE.message
    with pytest.raises(PeerError):
        await users.tasks[users.come()]
    users.leave[holder].set()
    await users.tasks[holder]
    assert (users.queue.busy, users.queue.waiting) == (0, 0)


STEP = st.one_of(
    st.tuples(st.just("come"), st.sampled_from(["ann", "bob", ""])),
    st.tuples(st.sampled_from(["leave", "cancel", "both"]), st.integers(0, 11)),
    st.tuples(st.just("yield"), st.integers(1, 3)),
)


@settings(max_examples=150, deadline=None)
@given(slots=st.integers(1, 3), steps=st.lists(STEP, max_size=40))
def test_whatever_the_order_no_slot_leaks_and_nobody_overtakes(
    slots: int, steps: list[tuple[str, str | int]]
) -> None:
    async def main() -> None:
        users = Users(slots)
        for name, value in steps:
            if name == "come":
                users.come(str(value))
            elif name == "yield":
                for _ in range(int(value)):
                    await asyncio.sleep(0)
            elif int(value) < len(users.tasks):
                if name != "cancel":
                    users.leave[int(value)].set()
                if name != "leave":
                    users.tasks[int(value)].cancel()
            assert len(users.slots) <= users.queue.busy <= slots
        for leave in users.leave:
            leave.set()
        for task in users.tasks:
            with suppress(asyncio.CancelledError):
                await task
        assert (users.queue.busy, users.queue.waiting) == (0, 0)
        assert users.order == sorted(users.order)
        assert bool(users.moves) >= bool(users.order)

    run(main)
