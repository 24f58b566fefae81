from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from relaydesk.engine import collector as module
from relaydesk.engine.collector import BUSY_S, REST_S, THRESHOLDS, YOUNG, Collector
from tests.support.clock import FakeClock


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP_S", 0.002)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def walks() -> Iterator[list[int]]:
    """The generations walked."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


@contextlib.asynccontextmanager
async def _running(clock: FakeClock, at_rest: Callable[[], bool]) -> AsyncIterator[None]:
    task = asyncio.create_task(Collector(clock, at_rest).run())
    await asyncio.sleep(0.02)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class _Cycle:
    def __init__(self) -> None:
        self.me = self


def _old_cycle() -> weakref.ref[_Cycle]:
    """Garbage that only a full walk finds: it has outlived the others."""
    cycle = _Cycle()
    gc.collect(1)
    gc.collect(1)
    return weakref.ref(cycle)


@pytest.mark.parametrize(("at_rest", "pause_s"), [(True, REST_S), (False, BUSY_S)])
async def test_everything_is_walked_at_rest_and_at_last_without_one(
    clock: FakeClock, at_rest: bool, pause_s: float
) -> None:
    async with _running(clock, lambda: at_rest):
        garbage = _old_cycle()
        clock.advance(pause_s - 0.1)
        await asyncio.sleep(0.02)
        assert garbage() is not None
        clock.advance(0.2)
        await asyncio.sleep(0.02)
        assert garbage() is None


async def test_young_objects_are_walked_in_turns_of_their_own(clock: FakeClock, walks: list[int]) -> None:
    async with _running(clock, lambda: False):
        walks.clear()
        kept: list[Any] = []
        for _ in range(4):
            kept += [[] for _ in range(YOUNG + 100)]
            assert len(walks) == len(kept) // (YOUNG + 100) - 1
            await asyncio.sleep(0.02)
        assert walks == [0, 0, 0, 1]


async def test_a_node_in_which_nothing_is_made_walks_nothing(clock: FakeClock, walks: list[int]) -> None:
    async with _running(clock, lambda: True):
        gc.collect()
        walks.clear()
        clock.advance(BUSY_S * 2)
        await asyncio.sleep(0.02)
    assert walks == []


async def test_it_leaves_the_collector_as_it_was(clock: FakeClock) -> None:
    before = gc.get_threshold()
    async with _running(clock, lambda: True):
        assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
