"""What every front may rely on, held against all three implementations of `NodeApi`."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from relaydesk import scripted
from relaydesk.core.codec import encode
from relaydesk.core.commands import Access, CancelJob, FitModel, LoadModel, ShowDefaultKey, Stop
from relaydesk.core.errors import LocalError
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.node_view import SECTIONS, NodeView, Update, loading_view
from relaydesk.engine import watch
from relaydesk.node_api import WatchClosedError
from tests.contract.rigs import HOSTILE, SECRET, LocalRig, RemoteRig, Rig, ScriptedRig

QUEUE = 3


@pytest.fixture(autouse=True)
def _short_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "QUEUE_LIMIT", QUEUE)
    monkeypatch.setattr(scripted, "QUEUE_LIMIT", QUEUE)


@pytest_asyncio.fixture(params=[LocalRig, RemoteRig, ScriptedRig], ids=["local", "remote", "scripted"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    rig: Rig = request.param()
    await rig.start(tmp_path)
    yield rig
    await rig.close()


async def _next(updates: AsyncIterator[Update]) -> Update:
    async with asyncio.timeout(5):
        return await anext(updates)


async def _to_the_end(updates: AsyncIterator[Update]) -> tuple[list[Update], str]:
    seen: list[Update] = []
    try:
        while True:
            seen.append(await _next(updates))
    except WatchClosedError as closed:
        return seen, closed.reason


def _sections(record: NodeView | Update) -> dict[str, Any]:
    return {name: getattr(record, name) for name in SECTIONS}


async def test_the_first_item_is_a_full_snapshot(rig: Rig) -> None:
    first = await _next(rig.node.watch())
    view = await rig.node.snapshot()
    assert _sections(first) == _sections(view)
    assert all(section.state == "ready" for section in _sections(first).values())


async def test_sections_replace_whole(rig: Rig) -> None:
    updates = rig.node.watch()
    view = loading_view(0).replaced(await _next(updates))
    for keys in (2, 3):
        await rig.change()
        while view.keys.value is None or len(view.keys.value.keys) < keys:
            update = await _next(updates)
            changed = {name for name, section in _sections(update).items() if section is not None}
            assert changed <= {"keys", "log"}
            view = view.replaced(update)
    assert _sections(view) == _sections(await rig.node.snapshot())


async def test_topics_choose_sections(rig: Rig) -> None:
    updates = rig.node.watch(["keys", "meta"])
    first = await _next(updates)
    assert {name for name, section in _sections(first).items() if section is not None} == {"keys", "meta"}
    await rig.change()
    second = await _next(updates)
    assert {name for name, section in _sections(second).items() if section is not None} == {"keys"}


async def test_an_unknown_topic_is_refused_by_name(rig: Rig) -> None:
    with pytest.raises(LocalError, match="weather") as caught:
        await _next(rig.node.watch(["keys", "weather"]))
    assert caught.value.fault.code == "invalid_request"


async def test_watchers_do_not_disturb_each_other(rig: Rig) -> None:
    first, second = rig.node.watch(), rig.node.watch(["keys"])
    await _next(first)
    await _next(second)
    await first.aclose()  # type: ignore[attr-defined]
    await rig.change()
    assert (await _next(second)).keys is not None


async def test_a_watcher_that_lags_is_closed_and_may_come_back(rig: Rig) -> None:
    updates = rig.node.watch()
    await _next(updates)
    await rig.flood(2 * QUEUE + 4)
    seen, reason = await _to_the_end(updates)
    assert reason == "lagged"
    assert len(seen) < 2 * QUEUE + 4
    again = await _next(rig.node.watch())
    assert again.keys is not None
    assert len(again.keys.value.keys) == 1 + 2 * QUEUE + 4  # type: ignore[union-attr]


async def test_a_node_that_stops_says_so(rig: Rig) -> None:
    updates = rig.node.watch()
    await _next(updates)
    await rig.stop()
    assert (await _to_the_end(updates))[1] == "stopped"


async def test_read_only_refuses_every_change(rig: Rig) -> None:
    assert rig.node.access is Access.WRITE
    assert rig.reader.access is Access.READ
    for command in (LoadModel("m"), ShowDefaultKey(), Stop()):
        outcome = await rig.reader.call(command)
        assert not outcome.ok
        assert outcome.fault is not None
        assert outcome.fault.code == "refused"
        assert "read-only" in outcome.fault.message
    if isinstance(rig, LocalRig):
        assert rig.live.loaded == []


async def test_read_only_still_reads(rig: Rig) -> None:
    assert _sections(await rig.reader.snapshot()) == _sections(await rig.node.snapshot())
    outcome = await rig.reader.call(FitModel("m"))
    if rig.acts:
        assert outcome.ok
        assert outcome.value == {"name": "m", "fits": True}
    else:
        assert outcome.fault is not None
        assert outcome.fault.code == "refused"
        assert "recording" in outcome.fault.message


async def test_commands_answer_with_an_outcome(rig: Rig) -> None:
    outcome = await rig.node.call(LoadModel("org/m:Q4"))
    if rig.acts:
        assert outcome.ok
        assert outcome.job == "job_1"
        assert isinstance(rig, LocalRig)
        assert rig.live.loaded == ["org/m:Q4"]
    else:
        assert outcome.fault is not None
        assert outcome.fault.code == "refused"


async def test_what_is_not_built_says_so(rig: Rig) -> None:
    outcome = await rig.node.call(CancelJob("j"))
    assert not outcome.ok
    assert outcome.fault is not None
    assert outcome.fault.code == ("not_built" if rig.acts else "refused")
    assert "cancel-job" in outcome.fault.message


async def test_no_view_has_a_secret_though_a_command_may_show_one(rig: Rig) -> None:
    if rig.acts:
        outcome = await rig.node.call(ShowDefaultKey())
        assert outcome.value == {"key": SECRET}
    updates = rig.node.watch()
    seen = [await _next(updates)]
    await rig.change()
    seen.append(await _next(updates))
    for record in (*seen, await rig.node.snapshot()):
        assert SECRET.encode() not in encode(record)
    assert b"key0" in encode(seen[0])


async def test_foreign_text_arrives_safe_and_typed(rig: Rig) -> None:
    for record in (await _next(rig.node.watch(["log"])), await rig.node.snapshot()):
        assert record.log is not None
        assert record.log.value is not None
        texts = [line.text for line in record.log.value.lines[: len(HOSTILE)]]
        assert texts == [safe_text(hostile, 1000) for hostile in HOSTILE]
        assert {type(text) for text in texts} == {SafeText}
        assert not {unicodedata.category(char) for text in texts for char in text} & {"Cc", "Cf", "Cs"}
