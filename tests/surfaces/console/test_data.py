"""The feed: one watch, merged, gated, reconnected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

import pytest

from relaydesk.core.commands import Access, Command, Outcome
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.view.node_view import NodeView, Update, loading_view
from relaydesk.core.view.sections import HealthView, Section
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.node_api import WatchClosedError
from relaydesk.surfaces.console import data
from relaydesk.surfaces.console.data import Feed, Link, differing
from tests.support.clock import FakeClock
from tests.surfaces.console.stage import Desk

HEALTH = Section("ready", 1, HealthView(1))


def test_a_newer_date_alone_is_no_difference() -> None:
    before = loading_view(1)
    assert differing(before, loading_view(2)) == frozenset()
    one = before.replaced(Update(1, health=HEALTH))
    assert differing(before, one) == {"health"}
    same = one.replaced(Update(2, health=Section("ready", 2, HealthView(1))))
    assert differing(one, same) == frozenset()
    failed = one.replaced(Update(2, health=Section("failed", 1, HealthView(1))))
    assert differing(one, failed) == {"health"}


class Watched:
    """A node of which every watch is a list of things that come: updates, then what ends it."""

    access = Access.WRITE

    def __init__(self, *watches: list[Any]) -> None:
        self.watches = list(watches)
        self.begun = 0

    async def snapshot(self) -> NodeView:
        raise NotImplementedError

    async def call(self, command: Command) -> Outcome:
        raise NotImplementedError

    async def watch(self, topics: Collection[str] | None = None) -> AsyncIterator[Update]:
        self.begun += 1
        for thing in self.watches.pop(0) if self.watches else [None]:
            if isinstance(thing, Exception):
                raise thing
            if thing is None:
                await asyncio.Event().wait()
            yield thing


def _full(in_flight: int) -> Update:
    section = Section("ready", 1, HealthView(in_flight))
    return loading_view(1).replaced(Update(1, health=section)).as_update()


class Seen:
    def __init__(self, node: Watched) -> None:
        self.views: list[int] = []
        self.links: list[Link] = []
        self.clock = FakeClock()
        self.feed = Feed(self._connect, self.clock, self._view, self.links.append)
        self._node = node

    async def _connect(self) -> Any:
        return self._node

    def _view(self, view: NodeView, changed: frozenset[str]) -> None:
        assert view.health.value is not None
        self.views.append(view.health.value.in_flight)

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not true():
                await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(data, "LONGEST_PAUSE_S", 0.04)
    monkeypatch.setattr(data, "_LAGGED_PAUSE_S", 0.01)


async def test_lagged_is_rebuilt_without_a_word() -> None:
    seen = Seen(Watched([_full(1), WatchClosedError("lagged")], [_full(2), None]))
    task = spawn(seen.feed.run(), name="feed")
    await seen.until(lambda: 2 in seen.views)
    assert [link.state for link in seen.links] == ["live"]
    await cancel_and_wait(task)


@pytest.mark.parametrize(
    ("end", "why", "code"),
    [
        (WatchClosedError("lost"), "the node went away", ""),
        (WatchClosedError("stopped"), "the node has stopped", ""),
        (EnvError("no_node", "no node answers", "start one"), "no node answers", "no_node"),
        (LocalError("conflict", "another version", "restart both"), "another version", "conflict"),
        (ValueError("odd"), "the watch failed (ValueError)", ""),
    ],
)
async def test_what_ended_a_watch_is_said_and_it_goes_on(end: Exception, why: str, code: str) -> None:
    seen = Seen(Watched([_full(1), end], [end], [_full(2), None]))
    task = spawn(seen.feed.run(), name="feed")
    await seen.until(lambda: 2 in seen.views)
    lost = [link for link in seen.links if link.state == "lost"]
    assert {(link.why, link.code) for link in lost} == {(why, code)}
    assert seen.links[0].state == "live"
    assert seen.links[-1].state == "live"
    # The pauses grow from one failure to the next, and start anew after a success.
    assert [link.retry_s for link in lost if link.retry_s] == [0.01, 0.02]
    await cancel_and_wait(task)


async def test_no_faster_than_the_rate_and_never_while_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Queue[Any]()
    node = Watched()

    async def watch(topics: Collection[str] | None = None) -> AsyncIterator[Update]:
        while True:
            yield await gate.get()

    node.watch = watch  # type: ignore[method-assign]
    seen = Seen(node)
    seen.feed.set_rate(4.0)
    task = spawn(seen.feed.run(), name="feed")
    gate.put_nowait(_full(1))
    await seen.until(lambda: seen.views == [1])
    for count in range(2, 30):
        gate.put_nowait(Update(count, health=Section("ready", 1, HealthView(count))))
    await asyncio.sleep(0.05)
    assert seen.views == [1]
    await seen.until(lambda: len(seen.views) > 1)
    assert seen.views == [1, 29]
    seen.feed.pause(True)
    gate.put_nowait(Update(40, health=Section("ready", 1, HealthView(40))))
    await asyncio.sleep(0.4)
    assert seen.views == [1, 29]
    seen.clock.advance(1)
    seen.feed.pause(False)
    assert seen.views == [1, 29, 40]
    seen.feed.focus(False)
    gate.put_nowait(Update(41, health=Section("ready", 1, HealthView(41))))
    await asyncio.sleep(0.4)
    assert seen.views[-1] == 40
    seen.clock.advance(1)
    seen.feed.focus(True)
    assert seen.views[-1] == 41
    await cancel_and_wait(task)


async def test_the_same_again_is_not_shown(desk: Desk) -> None:
    seen: list[frozenset[str]] = []

    async def connect() -> Any:
        return desk.node

    feed = Feed(connect, desk.clock, lambda view, changed: seen.append(changed), lambda link: None)
    task = spawn(feed.run(), name="feed")
    await asyncio.sleep(0.05)
    assert len(seen) == 1
    desk.clock.advance(60)
    desk.set(health=desk.values["health"], log=desk.values["log"])
    await asyncio.sleep(0.15)
    feed.hurry()
    assert len(seen) == 1
    await cancel_and_wait(task)


async def test_a_pause_between_tries_can_be_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "FIRST_PAUSE_S", 60.0)
    node = Watched([_full(1), WatchClosedError("lost")], [_full(2), None])
    seen = Seen(node)
    task = spawn(seen.feed.run(), name="feed")
    await seen.until(lambda: seen.feed.link.state == "lost")
    assert node.begun == 1
    seen.feed.retry()
    await seen.until(lambda: 2 in seen.views)
    await cancel_and_wait(task)
