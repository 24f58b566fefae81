from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.events import Event, HealthSampled, KeysChanged
from relaydesk.core.view.node_view import SECTIONS, NodeView, Update, loading_view
from relaydesk.core.view.sections import HealthView, KeysView, KeyView
from relaydesk.engine import watch as watch_module
from relaydesk.engine.bus import Bus
from relaydesk.engine.projector import Projector
from relaydesk.engine.watch import WatchHub
from relaydesk.node_api import WatchClosedError
from tests.support.clock import FakeClock


class Rig:
    """A hub over two sections that tests change."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.keys = 0
        self.bus = Bus()
        self.projector = Projector(
            FakeClock(),
            {
                "health": lambda: HealthView(in_flight=self.in_flight),
                "keys": lambda: KeysView(tuple(KeyView(f"k{n}", "f", "file") for n in range(self.keys))),
            },
        )
        self.hub = WatchHub(self.bus, self.projector)

    def sample(self) -> None:
        self.in_flight += 1
        self.bus.publish(HealthSampled())

    def add_key(self) -> None:
        self.keys += 1
        self.bus.publish(KeysChanged())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.hub.run())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    async with rig.running():
        yield rig


async def _next(updates: AsyncIterator[Update], within_s: float = 2.0) -> Update:
    async with asyncio.timeout(within_s):
        return await anext(updates)


async def _reason(updates: AsyncIterator[Update]) -> str:
    try:
        while True:
            await _next(updates)
    except WatchClosedError as closed:
        return closed.reason


async def test_the_first_update_has_every_section(rig: Rig) -> None:
    first = await _next(rig.hub.watch())
    assert all(getattr(first, name) is not None for name in SECTIONS)


async def test_topics_limit_first_and_later_updates(rig: Rig) -> None:
    updates = rig.hub.watch(["health"])
    first = await _next(updates)
    assert [name for name in SECTIONS if getattr(first, name) is not None] == ["health"]
    rig.add_key()
    rig.sample()
    second = await _next(updates)
    assert second.keys is None
    assert second.health is not None
    assert second.health.value == HealthView(in_flight=1)


async def test_what_was_sent_is_not_sent_again(rig: Rig) -> None:
    updates = rig.hub.watch()
    await _next(updates)
    rig.sample()
    assert (await _next(updates)).health is not None
    rig.add_key()
    second = await _next(updates)
    assert second.keys is not None
    assert second.health is None


async def test_no_topics_is_a_watch_of_nothing(rig: Rig) -> None:
    updates = rig.hub.watch([])
    first = await _next(updates)
    assert first == Update(seq=first.seq)
    rig.add_key()
    with pytest.raises(TimeoutError):
        await _next(updates, 0.4)


async def test_unknown_topic_is_named(rig: Rig) -> None:
    with pytest.raises(LocalError, match="weather") as caught:
        await _next(rig.hub.watch(["health", "weather"]))
    assert caught.value.fault.code == "invalid_request"


async def test_notable_events_do_not_wait_for_the_tick(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    updates = rig.hub.watch()
    await _next(updates)
    monkeypatch.setattr(watch_module, "TICK_S", 30.0)
    rig.sample()
    await asyncio.sleep(0.4)  # the tick under way when the constant changed
    rig.add_key()
    update = await _next(updates)
    while update.keys is None:
        update = await _next(updates)
    assert update.keys.value is not None


async def test_a_burst_costs_few_updates_and_ends_with_the_truth(rig: Rig) -> None:
    updates = rig.hub.watch(["health"])
    await _next(updates)
    for _ in range(500):
        rig.sample()
        await asyncio.sleep(0.001)
    seen = 1
    update = await _next(updates)
    while update.health is None or update.health.value != HealthView(in_flight=500):
        update = await _next(updates)
        seen += 1
    assert seen <= 8  # half a second of samples, four ticks a second


async def test_a_watcher_that_lags_is_closed_and_may_come_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "QUEUE_LIMIT", 2)
    slow, quick = rig.hub.watch(), rig.hub.watch()
    await _next(slow)
    await _next(quick)
    for _ in range(4):
        rig.add_key()
        assert (await _next(quick)).keys is not None
    assert await _reason(slow) == "lagged"
    again = await _next(rig.hub.watch())
    assert again.keys is not None
    assert again.keys.value is not None
    assert len(again.keys.value.keys) == 4


async def test_a_lagging_watcher_gets_nothing_old(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "QUEUE_LIMIT", 2)
    slow, quick = rig.hub.watch(), rig.hub.watch()
    await _next(slow)
    await _next(quick)
    for _ in range(4):
        rig.add_key()
        await _next(quick)
    with pytest.raises(WatchClosedError):
        await _next(slow)


async def test_stop_sends_what_is_left_and_closes() -> None:
    rig = Rig()
    async with rig.running():
        updates = rig.hub.watch()
        await _next(updates)
        rig.sample()
    last = await _next(updates)
    assert last.health is not None
    assert last.health.value == HealthView(in_flight=1)
    assert await _reason(updates) == "stopped"


async def test_who_comes_after_the_stop_sees_the_view_and_is_sent_away() -> None:
    rig = Rig()
    async with rig.running():
        pass
    updates = rig.hub.watch()
    assert (await _next(updates)).health is not None
    assert await _reason(updates) == "stopped"


async def test_a_hub_started_again_serves_again() -> None:
    rig = Rig()
    async with rig.running():
        pass
    async with rig.running():
        updates = rig.hub.watch()
        await _next(updates)
        rig.add_key()
        assert (await _next(updates)).keys is not None


async def test_events_before_the_hub_runs_are_not_missed() -> None:
    rig = Rig()
    assert rig.projector.view().health.value == HealthView(in_flight=0)
    rig.sample()
    assert rig.projector.view().health.value == HealthView(in_flight=1)


async def test_places_are_bounded_and_freed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "WATCHER_LIMIT", 2)
    first, second = rig.hub.watch(), rig.hub.watch()
    await _next(first)
    await _next(second)
    with pytest.raises(LocalError, match="2 watchers"):
        await _next(rig.hub.watch())
    await first.aclose()  # type: ignore[attr-defined]
    await _next(rig.hub.watch())


async def test_nobody_watching_builds_nothing(rig: Rig) -> None:
    built: list[str] = []
    rig.projector._providers["health"] = lambda: built.append("x")
    for _ in range(10):
        rig.bus.publish(KeysChanged())
        rig.bus.publish(HealthSampled())
    await asyncio.sleep(0.4)
    assert built == []


class _Odd(Event):
    """An event of no section."""


steps = st.lists(st.sampled_from(["sample", "key", "odd", "pause", "take"]), max_size=25)


@given(steps)
@settings(max_examples=30, deadline=None)
def test_a_watcher_that_keeps_up_ends_with_the_snapshot(sequence: list[str]) -> None:
    # One random life of a hub with its pauses cut short, against the projector's own view.
    async def live() -> tuple[NodeView, NodeView]:
        rig = Rig()
        seen: list[NodeView] = []

        async def follow() -> None:
            view = loading_view(0)
            async for update in rig.hub.watch():
                view = view.replaced(update)
                seen.append(view)

        async with rig.running():
            watcher = asyncio.create_task(follow())
            await asyncio.sleep(0)
            actions: dict[str, Any] = {
                "sample": rig.sample,
                "key": rig.add_key,
                "odd": lambda: rig.bus.publish(_Odd()),
                "take": lambda: rig.projector.view(["keys"]),
            }
            for step in sequence:
                if step == "pause":
                    await asyncio.sleep(0.002)
                else:
                    actions[step]()
        with pytest.raises(WatchClosedError):
            await watcher
        return seen[-1], rig.projector.view()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch_module, "TICK_S", 0.001)
        watched, truth = asyncio.run(live())
    for name in SECTIONS:
        assert getattr(watched, name) == getattr(truth, name)
