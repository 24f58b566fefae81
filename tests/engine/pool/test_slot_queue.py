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


class Stranger:
    """One request of a stranger, until it is told to leave."""

    def __init__(self, queue: SlotQueue, most: int, wait_s: float = 5.0) -> None:
        self.slot: Slot | None = None
        self.code = ""
        self.leave = asyncio.Event()
        self._queue, self._most, self._wait_s = queue, most, wait_s
        self.task = asyncio.create_task(self._use())

    async def _use(self) -> None:
        try:
            async with self._queue.stranger(self._most, self._wait_s) as slot:
                self.slot = slot
                await self.leave.wait()
        except PeerError as error:
            self.code = error.fault.code
        finally:
            self.slot = None


async def test_a_stranger_never_holds_the_last_slot_nor_more_than_its_share() -> None:
    users = Users(slots=4)
    strangers = [Stranger(users.queue, 2) for _ in range(4)]
    await users.settle()
    assert [each.slot is not None for each in strangers] == [True, True, False, False]
    assert not users.queue.room_for_stranger(2)
    # Two wait already: whoever comes now would not get one at once.
    assert users.queue.idle_for_strangers(3) == 0
    assert not users.queue.room_for_stranger(0)
    users.come()
    await users.settle()
    # One slot is free; a bigger share does not help: it is the last.
    assert users.queue.busy == 3
    assert not users.queue.room_for_stranger(4)
    strangers[0].leave.set()
    await users.settle()
    assert strangers[2].slot is not None
    assert users.queue.lent == 2
    for each in strangers:
        each.leave.set()
    users.leave[0].set()
    await asyncio.gather(*(each.task for each in strangers), *users.tasks)
    assert (users.queue.busy, users.queue.lent) == (0, 0)


async def test_the_household_goes_first_and_a_stranger_waits_only_so_long() -> None:
    users = Users(slots=2)
    first, second = users.come(), users.come()
    await users.settle()
    stranger = Stranger(users.queue, 2, wait_s=0.05)
    late = users.come()
    await users.settle()
    users.leave[first].set()
    await users.settle()
    assert late in users.slots
    assert stranger.slot is None
    await stranger.task
    assert stranger.code == "queue_full"
    for number in (second, late):
        users.leave[number].set()
    await asyncio.gather(*users.tasks)


async def test_who_gives_up_waiting_makes_way_for_a_stranger() -> None:
    users = Users(slots=2)
    users.come()
    users.come()
    await users.settle()
    waits = users.come()
    stranger = Stranger(users.queue, 1)
    await users.settle()
    users.leave[0].set()
    await users.settle()
    assert waits in users.slots
    users.leave[waits].set()
    await users.settle()
    # The other request of the household holds one slot, the last one stays free for it.
    assert users.queue.busy == 1
    assert stranger.slot is None
    users.leave[1].set()
    await users.settle()
    assert stranger.slot is not None
    stranger.leave.set()
    await asyncio.gather(stranger.task, *users.tasks)


async def test_a_strangers_slot_is_nobodys_cache() -> None:
    users = Users(slots=2)
    own = users.come("ann")
    await users.settle()
    users.leave[own].set()
    await users.settle()
    async with users.queue.stranger(1, 1.0) as slot:
        assert not slot.may_reuse_cache
    async with users.queue.stranger(1, 1.0) as slot:
        assert not slot.may_reuse_cache


async def test_the_end_of_an_engine_refuses_strangers_too() -> None:
    users = Users(slots=1)
    stranger = Stranger(users.queue, 1)
    await users.settle()
    users.queue.end(GONE)
    await stranger.task
    assert stranger.code == "engine_failed"
    late = Stranger(users.queue, 1)
    await late.task
    assert late.code == "engine_failed"


@given(st.lists(st.tuples(st.sampled_from("hslx"), st.integers(0, 9)), max_size=60), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_whatever_the_order_strangers_leave_a_slot_and_none_leaks(
    steps: list[tuple[str, int]], slots: int
) -> None:
    async def story() -> None:
        users = Users(slots=slots)
        strangers: list[Stranger] = []
        for step, number in steps:
            if step == "h":
                users.come()
            elif step == "s":
                strangers.append(Stranger(users.queue, 2))
            elif step == "l" and users.leave:
                users.leave[number % len(users.leave)].set()
            elif step == "x" and strangers:
                strangers[number % len(strangers)].task.cancel()
            await users.settle()
            held = [each for each in strangers if each.slot is not None]
            assert len(held) == users.queue.lent <= 2
            assert users.queue.busy == len(held) + len(users.slots)
            assert not held or len(held) < slots
        for each in strangers:
            each.task.cancel()
        for event in users.leave:
            event.set()
        await asyncio.gather(*(each.task for each in strangers), *users.tasks, return_exceptions=True)
        assert (users.queue.busy, users.queue.lent) == (0, 0)

    run(story)


async def test_slots_that_come_free_in_one_moment_do_not_let_too_many_strangers_in() -> None:
    users = Users(slots=4)
    for _ in range(3):
        users.come()
    await users.settle()
    strangers = [Stranger(users.queue, 1) for _ in range(2)]
    await users.settle()
    for event in users.leave:
        event.set()
    await users.settle()
    assert [each.slot is not None for each in strangers] == [True, False]
    for each in strangers:
        each.leave.set()
    await asyncio.gather(*(each.task for each in strangers), *users.tasks)
