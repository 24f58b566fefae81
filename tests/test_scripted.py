from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.codec import encode
from relaydesk.core.errors import LocalError
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.node_view import SECTIONS, Update, loading_view
from relaydesk.core.view.sections import HealthView, KeysView, Section
from relaydesk.node_api import WatchClosedError
from relaydesk.scripted import Frame, Recorder, ScriptedNode, read_recording
from tests.support.clock import FakeClock

FIRST = loading_view(1).as_update()


def _health(number: int) -> Section[HealthView]:
    return Section(state="ready", as_of_ms=number, value=HealthView(in_flight=number))


def _frames(*times_ms: int) -> tuple[Frame, ...]:
    later = [Frame(at_ms, Update(seq=n, health=_health(n))) for n, at_ms in enumerate(times_ms, 1)]
    return (Frame(0, FIRST), *later)


def _shown(section: Section[HealthView] | None) -> int:
    return 0 if section is None or section.value is None else section.value.in_flight


async def _next(updates: AsyncIterator[Update]) -> Update:
    async with asyncio.timeout(2):
        return await anext(updates)


async def test_frames_come_at_their_time() -> None:
    clock = FakeClock()
    node = ScriptedNode(_frames(1000, 3000), clock, sleep=clock.sleep)
    updates = node.watch()
    await _next(updates)
    waiting = asyncio.create_task(_next(updates))
    await asyncio.sleep(0)
    clock.advance(0.999)
    await asyncio.sleep(0.01)
    assert not waiting.done()
    clock.advance(0.001)
    assert _shown((await waiting).health) == 1
    assert _shown((await node.snapshot()).health) == 1
    clock.advance(2)
    assert _shown((await _next(updates)).health) == 2


async def test_speed_shortens_time() -> None:
    clock = FakeClock()
    node = ScriptedNode(_frames(1000, 3000), clock, speed=10.0, sleep=clock.sleep)
    clock.advance(0.1)
    assert _shown((await node.snapshot()).health) == 1
    updates = node.watch()
    await _next(updates)
    waiting = asyncio.create_task(_next(updates))
    await asyncio.sleep(0.01)
    clock.advance(0.2)
    assert _shown((await waiting).health) == 2


async def test_real_time_works_too() -> None:
    from relaydesk.engine.clock import SystemClock

    node = ScriptedNode(_frames(30, 60), SystemClock())
    updates = node.watch(["health"])
    await _next(updates)
    assert [_shown((await _next(updates)).health) for _ in range(2)] == [1, 2]


async def test_after_its_end_a_recording_stands_still() -> None:
    clock = FakeClock()
    node = ScriptedNode(_frames(1000), clock, sleep=clock.sleep)
    clock.advance(3600)
    updates = node.watch()
    assert _shown((await _next(updates)).health) == 1
    waiting = asyncio.create_task(_next(updates))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    node.stop()
    with pytest.raises(WatchClosedError, match="stopped"):
        await waiting


async def test_frames_without_a_topic_are_passed_over() -> None:
    clock = FakeClock()
    node = ScriptedNode(_frames(1000), clock, sleep=clock.sleep)
    updates = node.watch(["keys"])
    await _next(updates)
    clock.advance(2)
    waiting = asyncio.create_task(_next(updates))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    node.stop()
    with pytest.raises(WatchClosedError):
        await waiting


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"nonsense", "line 1"),
        (b"\xff", "line 1"),
        (b"[" * 100_000, "line 1"),
        (b'{"at_ms":0}', "line 1"),
        (b'{"at_ms":0,"update":{"seq":1}}', "line 1 .* lacks meta, models"),
        (encode(Frame(0, FIRST)) + b'\n\n{"at_ms":"x"}', "line 3"),
        (encode(Frame(5, FIRST)) + b'\n{"at_ms":4,"update":{"seq":2}}', "line 2 .* backwards"),
    ],
    ids=range(9),
)
def test_a_recording_that_cannot_be_read_names_the_line(data: bytes, text: str) -> None:
    with pytest.raises(LocalError, match=text):
        read_recording(data.split(b"\n"))


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 9)), max_size=12))
@settings(max_examples=100, deadline=None)
def test_what_was_recorded_is_what_is_read(steps: list[tuple[int, int]]) -> None:
    clock = FakeClock()
    file = io.BytesIO()

    async def updates() -> AsyncIterator[Update]:
        yield FIRST
        for pause_ms, number in steps:
            clock.advance(pause_ms / 1000)
            yield Update(seq=number, health=_health(number))
        raise WatchClosedError("stopped")

    asyncio.run(Recorder(file, clock).record(updates()))
    frames = read_recording(file.getvalue().splitlines())
    assert [frame.update for frame in frames] == [
        FIRST,
        *(Update(seq=number, health=_health(number)) for _, number in steps),
    ]
    elapsed = [sum(pause for pause, _ in steps[:count]) for count in range(len(steps) + 1)]
    assert all(abs(frame.at_ms - ms) <= 1 for frame, ms in zip(frames, elapsed, strict=True))


async def test_lines_are_plain_json_with_time_and_update() -> None:
    file = io.BytesIO()

    async def updates() -> AsyncIterator[Update]:
        yield FIRST
        yield Update(seq=2, keys=Section(state="ready", as_of_ms=1, value=KeysView()))

    await Recorder(file, FakeClock()).record(updates())
    first, second = (json.loads(line) for line in file.getvalue().splitlines())
    assert set(first) == {"at_ms", "update"}
    assert set(first["update"]) == {"seq", *SECTIONS}
    assert set(second["update"]) == {"seq", "keys"}


def test_what_nodes_did_not_have_yet_is_empty_in_a_recording_of_that_time() -> None:
    line = msgspec.json.decode(encode(_frames(0)[0]))
    for name in ("network", "relays", "hops", "ledger", "hopcheck"):
        line["update"].pop(name)
    (frame,) = read_recording([msgspec.json.encode(line)])
    assert frame.update.network is not None
    assert frame.update.network.value == NetworkView()
    assert all(getattr(frame.update, name) is not None for name in SECTIONS)
