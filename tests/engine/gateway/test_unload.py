"""Requests that ask for a model and no answer, and those that let it go."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import EnvError, FaultError
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.gateway.ollama.generate import generate_plan
from relaydesk.engine.gateway.run import Run
from tests.support import gguf_builder
from tests.support.scripted_hub import MIB, ScriptedHub

ANN = Caller("ann", "ann")


async def open_run(hub: ScriptedHub, **fields: Any) -> Run:
    incoming = Incoming(ANN, "/api/generate", "r")
    return await hub.gateway.open(msgspec.json.encode(fields), generate_plan, incoming)


async def said(run: Run) -> dict[str, Any]:
    """The one line of a run that asks nothing, as it is streamed or not."""
    if run.stream:
        (line,) = [frame async for frame in run.frames()]
    else:
        line = await run.whole()
    found: dict[str, Any] = json.loads(line)
    return found


async def unload(hub: ScriptedHub, model: str = "tiny", stream: bool = False) -> dict[str, Any]:
    return await said(await open_run(hub, model=model, stream=stream, keep_alive=0))


@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_is_loaded_without_a_question(hub: ScriptedHub, stream: bool) -> None:
    run = await open_run(hub, model="tiny", stream=stream, keep_alive=7)
    assert not run.warm
    assert (await said(run))["done_reason"] == "load"
    assert hub.pool.is_warm("tiny")
    assert hub.starter.engine("tiny").bodies == []
    (view,) = hub.journal.view().recent
    assert (view.status, view.state, view.choices) == (200, "done", 0)
    assert (view.prompt_tokens, view.completion_tokens) == (0, 0)
    assert view.load_ms is not None
    assert hub.journal.tokens_total == 0
    assert hub.pool.runner("tiny").keeps_s() == 7
    await hub.idle()


async def test_a_load_that_fails_is_said(hub: ScriptedHub) -> None:
    hub.starter.errors.append(EnvError("model_load_failed", "no"))
    run = await open_run(hub, model="tiny")
    with pytest.raises(FaultError, match="no"):
        async for _ in run.frames():
            pass
    assert hub.journal.view().recent[0].status == 503
    await hub.idle()


async def test_an_answer_says_how_long_its_model_stays(hub: ScriptedHub) -> None:
    await (await open_run(hub, prompt="hi", stream=False, keep_alive="1h")).whole()
    assert hub.pool.runner("tiny").keeps_s() == 3600
    await (await open_run(hub, prompt="hi", stream=False, keep_alive=0)).whole()
    await hub.until(lambda: hub.pool.runner("tiny").life.state == "cold")
    assert hub.starter.alive == []


async def test_a_model_is_let_go(hub: ScriptedHub) -> None:
    await hub.warm()
    assert (await unload(hub, "tiny:latest"))["done_reason"] == "unload"
    assert hub.starter.alive == []
    assert (await unload(hub))["done_reason"] == "unload"  # gone already: the same
    view = hub.journal.view().recent[0]
    assert (view.status, view.state, view.key, view.route) == (200, "done", "ann", "/api/generate")
    await hub.warm()
    assert (await unload(hub, stream=True))["done_reason"] == "unload"
    assert hub.starter.alive == []
    await hub.idle()


async def test_a_model_is_let_go_that_could_not_be_loaded(hub: ScriptedHub) -> None:
    hub.pool.memory.pretend_mib = 1
    assert (await unload(hub))["done_reason"] == "unload"
    with pytest.raises(FaultError) as caught:
        await open_run(hub, model="tiny")
    assert caught.value.fault.code == "model_unavailable"


async def test_a_model_that_only_embeds_is_loaded_and_let_go_too(hub: ScriptedHub) -> None:
    path = hub.dir / "embeds.gguf"
    path.write_bytes(gguf_builder.tiny(llama__pooling_type=1))
    await hub.add("embeds", path=str(path))
    assert (await said(await open_run(hub, model="embeds")))["done_reason"] == "load"
    assert hub.pool.is_warm("embeds")
    assert (await unload(hub, "embeds"))["done_reason"] == "unload"
    with pytest.raises(FaultError, match="only embeds"):
        await open_run(hub, model="embeds", prompt="hi")


async def test_leaving_while_it_is_let_go_changes_nothing(hub: ScriptedHub) -> None:
    hub.starter.stop_s = 0.05
    await hub.warm()
    leaving = asyncio.create_task(unload(hub))
    await hub.until(lambda: hub.pool.runner("tiny").life.state == "unloading")
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await hub.until(lambda: hub.starter.alive == [])
    assert hub.journal.view().recent[0].status == 200
    await hub.idle()


async def test_the_operators_models_stay(hub: ScriptedHub) -> None:
    await hub.registry.change("tiny", {"keep_alive_s": -1})
    await hub.warm()
    with pytest.raises(FaultError) as caught:
        await unload(hub)
    assert caught.value.fault.code == "refused"
    assert hub.pool.is_warm("tiny")
    assert hub.journal.view().recent[0].status == 403
    assert hub.journal.in_flight == 0


async def test_nothing_is_let_go_that_is_not_there_or_while_the_node_stops(hub: ScriptedHub) -> None:
    with pytest.raises(FaultError) as caught:
        await unload(hub, "nope")
    assert caught.value.fault.code == "model_not_found"
    hub.accepting = False
    with pytest.raises(FaultError) as caught:
        await unload(hub)
    assert caught.value.fault.code == "shutting_down"


async def test_a_client_cannot_keep_a_model_against_another_that_needs_the_room(hub: ScriptedHub) -> None:
    await hub.add("other")
    await (await open_run(hub, model="tiny", stream=False, keep_alive=-1)).whole()
    hub.pool.memory.pretend_mib = hub.pool.held_bytes() // MIB * 3 // 2  # room for one of them
    await (await open_run(hub, model="other", stream=False)).whole()
    assert hub.starter.alive == ["other"]
