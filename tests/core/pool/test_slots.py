from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.pool.slots import Slot, SlotTable, idle_for_strangers, stranger_may_take


def test_a_key_gets_its_own_slot_back_and_may_use_its_cache() -> None:
    table = SlotTable(3)
    assert table.take("ann") == Slot(0, False)
    assert table.take("bob") == Slot(1, False)
    table.give(0)
    table.give(1)
    assert table.take("bob") == Slot(1, True)
    assert table.take("ann") == Slot(0, True)


def test_the_newest_of_a_keys_slots_is_first() -> None:
    table = SlotTable(3)
    for _ in range(3):
        table.take("ann")
    for index in (2, 0, 1):
        table.give(index)
    assert table.take("ann") == Slot(2, True)  # taken last, so its prompt is the newest


def test_other_keys_lose_the_slot_unused_for_longest() -> None:
    table = SlotTable(2)
    for key in ("ann", "bob"):
        slot = table.take(key)
        assert slot is not None
        table.give(slot.number)
    assert table.take("eve") == Slot(0, False)
    table.give(0)
    assert table.take("ann") == Slot(1, False)  # eve has taken the place of her prompt


def test_nobodys_key_never_shares() -> None:
    table = SlotTable(1)
    for _ in range(3):
        assert table.take("") == Slot(0, False)
        table.give(0)


def test_a_full_table_gives_none_and_a_slot_is_given_back_once() -> None:
    table = SlotTable(1)
    slot = table.take("ann")
    assert slot is not None
    assert table.take("ann") is None
    assert (table.busy, table.count) == (1, 1)
    table.give(slot.number)
    assert table.busy == 0
    with pytest.raises(ValueError, match="free already"):
        table.give(slot.number)


def test_an_engine_has_a_slot() -> None:
    with pytest.raises(ValueError, match="at least one"):
        SlotTable(0)


@given(
    count=st.integers(1, 5),
    steps=st.lists(st.tuples(st.booleans(), st.sampled_from(["ann", "bob", "eve", ""])), max_size=60),
)
def test_whatever_happens_slots_are_neither_lost_nor_shared(
    count: int, steps: list[tuple[bool, str]]
) -> None:
    table = SlotTable(count)
    taken: dict[int, str] = {}
    last: dict[int, str] = {}
    for take, key in steps:
        if take:
            slot = table.take(key)
            assert (slot is None) == (len(taken) == count)
            if slot is None:
                continue
            assert slot.number not in taken
            # The rule of the cache: only where the very same key was the slot's last.
            assert slot.may_reuse_cache == (key != "" and last.get(slot.number) == key)
            free = [index for index in range(count) if index not in taken]
            if key and any(last.get(index) == key for index in free):
                assert slot.may_reuse_cache
            taken[slot.number] = last[slot.number] = key
        elif taken:
            number = min(taken)
            table.give(number)
            del taken[number]
        assert table.busy == len(taken)


@pytest.mark.parametrize(
    ("free", "held", "most", "waiting", "may"),
    [
        (4, 0, 2, 0, True),
        (2, 1, 2, 0, True),
        (1, 0, 2, 0, False),
        (4, 2, 2, 0, False),
        (4, 0, 2, 1, False),
        (4, 0, 0, 0, False),
    ],
)
def test_strangers_come_after_the_household(free: int, held: int, most: int, waiting: int, may: bool) -> None:
    assert stranger_may_take(free=free, held=held, most=most, waiting=waiting) is may


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 2))
def test_as_many_strangers_as_may_take_one_after_the_other(
    free: int, held: int, most: int, waiting: int
) -> None:
    count, left, taken = 0, free, held
    while stranger_may_take(free=left, held=taken, most=most, waiting=waiting):
        count, left, taken = count + 1, left - 1, taken + 1
    assert idle_for_strangers(free=free, held=held, most=most, waiting=waiting) == count
