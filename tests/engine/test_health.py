from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from relaydesk.core.events import HealthSampled, WorkerChanged
from relaydesk.engine import health as module
from relaydesk.engine.health import Health
from relaydesk.engine.looplag import LoopLag
from relaydesk.engine.pool.starter import RunningEngine
from relaydesk.engine.pool.views import workers_view
from relaydesk.engine.tasks import cancel_and_wait
from tests.support.scripted_engine import answer
from tests.support.scripted_hub import ScriptedHub


async def test_gauges_follow_the_journal_and_the_process(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path) as hub:
        await hub.add()
        health = Health(hub.journal, LoopLag(hub.clock), hub.pool, hub.bus)
        idle = health.view()
        assert (idle.in_flight, idle.queued, idle.requests_total, idle.tokens_total) == (0, 0, 0, 0)
        assert 10 < idle.rss_mb < 10_000
        hub.starter.gate.clear()
        request = asyncio.create_task(hub.chat())
        await hub.until(lambda: health.view().queued == 1)
        hub.starter.reply = lambda _: answer("x", "y", delay=0.05)
        hub.starter.gate.set()
        await hub.until(lambda: health.view().in_flight == 1)
        await request
        done = health.view()
        assert (done.in_flight, done.queued, done.requests_total, done.tokens_total) == (0, 0, 1, 2)
        assert done.tokens_per_s == 0.2


async def test_engines_memory_is_read_and_told_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", 0.01)
    monkeypatch.setattr(module, "MEMORY_EVERY", 1)
    sizes = {"now": 100}

    async def memory_mb(_: RunningEngine) -> int:
        return sizes["now"]

    monkeypatch.setattr(RunningEngine, "memory_mb", memory_mb)
    async with ScriptedHub(tmp_path) as hub:
        await hub.add()
        await hub.warm()
        health = Health(hub.journal, LoopLag(hub.clock), hub.pool, hub.bus)
        task = asyncio.create_task(health.run())
        await hub.until(lambda: workers_view(hub.pool).workers[0].memory_mb == 100)
        hub.events.clear()
        await asyncio.sleep(0.05)
        assert WorkerChanged("tiny") not in hub.events
        sizes["now"] = 120
        await hub.until(lambda: WorkerChanged("tiny") in hub.events)
        assert workers_view(hub.pool).workers[0].memory_mb == 120
        await hub.chat()
        await hub.until(lambda: HealthSampled() in hub.events)
        await cancel_and_wait(task)


async def test_an_engine_that_ends_meanwhile_disturbs_nothing(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path) as hub:
        await hub.add()
        await hub.warm()
        health = Health(hub.journal, LoopLag(hub.clock), hub.pool, hub.bus)
        hub.starter.crash("tiny")
        await health._read_engines()
        await hub.until(lambda: hub.pool.runner("tiny").running is None)
        await health._read_engines()
