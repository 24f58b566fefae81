from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError, FaultError
from relaydesk.core.pool import lifecycle
from relaydesk.core.view.sections import ModelView
from relaydesk.engine.pool.views import models_view, workers_view
from tests.support.scripted_engine import answer
from tests.support.scripted_hub import ScriptedHub


def seen(hub: ScriptedHub, name: str) -> ModelView:
    return next(model for model in models_view(hub.pool, hub.journal).models if model.name == name)


def brief(hub: ScriptedHub, name: str) -> tuple[str, bool, str]:
    model = seen(hub, name)
    assert bool(model.fit_reason) == (not model.fits)
    return model.state, model.fits, model.placement


async def test_a_models_states_from_cold_to_warm_and_back(hub: ScriptedHub) -> None:
    await hub.add("a", aliases=("b",), ctx=1024, slots=3, source="hf:x/y")
    assert brief(hub, "a") == ("cold", True, "host")
    hub.starter.gate.clear()
    request = asyncio.create_task(hub.chat())
    await hub.until(lambda: seen(hub, "a").progress == 0.25)
    assert brief(hub, "a") == ("loading", True, "host")
    assert (seen(hub, "a").queued, seen(hub, "a").in_flight) == (1, 0)
    hub.starter.reply = lambda _: answer("x", delay=0.2)
    hub.starter.gate.set()
    await hub.until(lambda: seen(hub, "a").in_flight == 1)
    assert brief(hub, "a") == ("warm", True, "host")
    assert seen(hub, "a").progress is None
    worker = workers_view(hub.pool).workers[0]
    assert (worker.model, worker.state, worker.slots, worker.busy) == ("a", "warm", 3, 1)
    await request
    hub.pool.runner("a").unload(force=False)
    await hub.until(lambda: workers_view(hub.pool).workers == ())
    assert brief(hub, "a") == ("cold", True, "host")
    model = seen(hub, "a")
    assert model.last_used_at_ms > model.added_at_ms > 0
    assert (model.aliases, model.context_length, model.slots, model.source) == (("b",), 1024, 3, "hf:x/y")
    assert (model.need_mib, model.measured, model.architecture) == (83, False, "llama")


async def test_a_model_that_can_never_fit(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path, memory_mib=50) as hub:
        await hub.add("a")
        assert brief(hub, "a") == ("unavailable", False, "")
        assert seen(hub, "a").fit_reason == '"a" needs about 83 MB and the whole pool tops out at 50 MB'


async def test_a_model_that_waits_for_others_does_not_fit_now_and_stays_cold(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path, memory_mib=100) as hub:
        await hub.add("a")
        await hub.add("b")
        await hub.warm("a")
        # Idle, so it would make room.
        assert brief(hub, "b") == ("cold", True, "host")
        hub.starter.reply = lambda _: answer("x", delay=0.2)
        request = asyncio.create_task(hub.chat(model="a"))
        await hub.until(lambda: hub.starter.open == 1)
        assert brief(hub, "b") == ("cold", False, "")
        assert brief(hub, "a") == ("warm", True, "host")
        await request
        await hub.registry.change("a", {"keep_alive_s": -1})
        # Kept by wish: nothing will free it.
        assert brief(hub, "b") == ("unavailable", False, "")


async def test_a_model_on_its_way_out_is_cold_and_fits(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path, memory_mib=100) as hub:
        await hub.add("a")
        await hub.add("b")
        await hub.warm("a")
        hub.starter.stop_s = 0.2
        hub.starter.engine("a")._stop_s = 0.2
        hub.pool.runner("a").unload(force=False)
        assert hub.pool.runner("a").life.state == "unloading"
        assert brief(hub, "a") == ("cold", True, "host")
        assert brief(hub, "b") == ("cold", False, "")
        # Its process is there until it is gone.
        assert [worker.model for worker in workers_view(hub.pool).workers] == ["a"]
        await hub.until(lambda: workers_view(hub.pool).workers == ())
        assert brief(hub, "b") == ("cold", True, "host")


async def test_a_load_that_failed_says_why_until_it_may_be_tried_again(hub: ScriptedHub) -> None:
    await hub.add("a")
    hub.starter.errors.append(EnvError("model_load_failed", "the engine said \x1b[2Jno"))
    assert (await hub.chat())[0] == 503
    assert brief(hub, "a") == ("unavailable", False, "")
    model = seen(hub, "a")
    assert model.fault is not None
    assert model.fault.code == "model_load_failed"
    assert "\x1b" not in model.fit_reason + model.fault.message
    await asyncio.sleep(0.15)
    assert brief(hub, "a") == ("cold", True, "host")
    assert seen(hub, "a").fault is None


async def test_an_engine_that_died_comes_back_soon_or_says_why_not(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "BACKOFF_FIRST_S", 1.0)
    await hub.add("a")
    await hub.warm("a")
    hub.starter.crash("a", "it was killed")
    await hub.until(lambda: hub.pool.runner("a").life.restarting)
    assert brief(hub, "a") == ("loading", True, "host")
    assert workers_view(hub.pool).workers == ()
    # Again and again, until the next try is far away.
    for _ in range(4):
        hub.starter.errors.append(EnvError("model_load_failed", "no"))
        hub.pool.runner("a").want(force=True)
        await hub.until(lambda: not hub.starter.errors)
        await asyncio.sleep(0.01)
    assert brief(hub, "a") == ("unavailable", False, "")
    with pytest.raises(FaultError):
        await hub.pool.runner("a").acquire()


async def test_a_file_that_is_gone(hub: ScriptedHub) -> None:
    await hub.add("a")
    hub.file("a").unlink()
    await hub.registry.reread("a")
    assert brief(hub, "a") == ("unavailable", False, "")
    model = seen(hub, "a")
    assert (model.need_mib, model.context_length, model.architecture) == (0, 512, "")


async def test_a_far_server(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path, memory_mib=0) as hub:
        await hub.add("far", kind="url", url="http://127.0.0.1:9/v1", ctx=4096)
        assert brief(hub, "far") == ("cold", True, "server")
        await hub.warm("far")
        assert brief(hub, "far") == ("warm", True, "server")
        assert workers_view(hub.pool).workers[0].kind == "url"


async def test_why_an_offered_model_is_not_offered(hub: ScriptedHub) -> None:
    await hub.add("a", slots=2, offer=True, input_rate=70_000)
    await hub.add("b", slots=1)
    await hub.add("c")
    assert "not loaded" in seen(hub, "a").unoffered
    assert seen(hub, "c").unoffered == ""
    await hub.warm("a")
    await hub.warm("b")
    await hub.registry.change("b", {"slots": 2, "offer": True})
    model = seen(hub, "a")
    assert (model.offer, model.input_rate, model.unoffered) == (True, 70_000, "")
    assert "one slot" in seen(hub, "b").unoffered
    none = models_view(hub.pool, hub.journal, share=0).models[0]
    assert "RELAY_NETWORK_SLOTS" in none.unoffered


async def test_a_model_removed_while_its_engine_stops_breaks_no_view(hub: ScriptedHub) -> None:
    await hub.add("a")
    hub.starter.stop_s = 0.1
    await hub.warm("a")
    await hub.registry.remove("a")
    forgetting = asyncio.create_task(hub.pool.forget("a"))
    await asyncio.sleep(0.01)
    assert models_view(hub.pool, hub.journal).models == ()
    assert [worker.model for worker in workers_view(hub.pool).workers] == ["a"]
    await forgetting
    assert workers_view(hub.pool).workers == ()


async def test_fifty_models_are_quick(hub: ScriptedHub, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(50):
        await hub.add(f"m{number:02}")
    started = hub.clock.mono()
    async with hub.session.get(f"{hub.url}/v1/models") as reply:
        listed = (await reply.json())["data"]
    took = hub.clock.mono() - started
    assert [model["id"] for model in listed] == [f"m{number:02}" for number in range(50)]
    with capsys.disabled():
        print(f"\n50 models listed in {took * 1000:.1f} ms")
