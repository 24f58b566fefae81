from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import Fault, FaultError, PeerError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.view.sections import RequestView
from relaydesk.engine.gateway.run import Run
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.scripted_hub import ScriptedHub, frames, texts

ANN = Caller("ann", "ann")


async def open_run(hub: ScriptedHub, request_id: str = "r", **fields: Any) -> Run:
    body = {"messages": [{"role": "user", "content": "Hi"}], **fields}
    return await hub.gateway.open(
        msgspec.json.encode(body),
        chat_plan,
        Incoming(
            ANN,
            "/v1",
            request_id,
        ),
    )


async def whole(hub: ScriptedHub, request_id: str) -> bytes:
    return await (await open_run(hub, request_id)).whole()


def waiting_for_slots(hub: ScriptedHub) -> int:
    slots = hub.pool.runner("tiny").slots
    return slots.waiting if slots is not None else 0


async def text_of(run: Run) -> str:
    return b"".join([frame async for frame in run.frames()]).decode()


def ended(hub: ScriptedHub, request_id: str = "r") -> RequestView:
    """The one record of a run that has ended, however."""
    assert hub.journal.in_flight == 0
    recent = [view for view in hub.journal.view().recent if view.id == request_id]
    assert len(recent) == 1
    return recent[0]


async def test_streamed_and_whole_say_the_same(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: answer("Hel", "lo", " there", prompt=7)
    text = await text_of(await open_run(hub, stream=True, stream_options={"include_usage": True}))
    whole = json.loads(await (await open_run(hub, "w")).whole())
    assert texts(text) == whole["choices"][0]["message"]["content"] == "Hello there"
    last = frames(text)[-2]
    assert last["choices"] == []
    assert last["usage"] == whole["usage"]
    assert whole["usage"]["completion_tokens"] == 3
    for request_id in ("r", "w"):
        view = ended(hub, request_id)
        assert (view.status, view.prompt_tokens, view.completion_tokens) == (200, 7, 3)
        assert view.finish_reasons == ("stop",)
        assert None not in (view.queue_ms, view.load_ms, view.first_token_ms, view.total_ms)
    assert "/models/" not in text


async def test_usage_only_where_it_was_asked_for_but_always_counted(hub: ScriptedHub) -> None:
    text = await text_of(await open_run(hub, stream=True))
    assert "usage" not in text
    assert ended(hub).completion_tokens == 2
    assert hub.starter.engine("tiny").bodies[0]["stream_options"] == {"include_usage": True}


async def test_the_engine_is_asked_with_the_slot_and_cache_of_the_key(hub: ScriptedHub) -> None:
    for request_id in ("a", "b"):
        await (await open_run(hub, request_id)).whole()
    bodies = hub.starter.engine("tiny").bodies
    assert [(body["id_slot"], body["cache_prompt"]) for body in bodies] == [(0, False), (0, True)]
    assert all(body["model"] == "tiny" and body["stream"] for body in bodies)


async def test_choices_are_requests_of_their_own(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda body: answer(f"seed {body['seed']}", delay=0.01)
    whole = json.loads(await (await open_run(hub, n=4, seed=7)).whole())
    assert [each["message"]["content"] for each in whole["choices"]] == [f"seed {7 + i}" for i in range(4)]
    assert whole["usage"]["completion_tokens"] == 4
    assert whole["usage"]["prompt_tokens"] == 5
    engine = hub.starter.engine("tiny")
    assert engine.most_open == 2  # as many as there are slots
    text = await text_of(await open_run(hub, "s", n=3, seed=1, stream=True))
    assert [texts(text, i) for i in range(3)] == ["seed 1", "seed 2", "seed 3"]
    assert frames(text)[-1] == "[DONE]"
    assert ended(hub, "s").finish_reasons == ("stop", "stop", "stop")
    await hub.idle()


@pytest.mark.parametrize("stream", [False, True])
async def test_one_choice_that_fails_ends_all(hub: ScriptedHub, stream: bool) -> None:
    for_ever = asyncio.Event()

    def reply(body: dict[str, Any]) -> Script:
        if body["seed"] == 1:
            return Script([piece("x"), 0.02, PeerError("engine_failed", "the engine broke off")])
        return Script([piece("y"), for_ever])

    hub.starter.reply = reply
    run = await open_run(hub, n=2, seed=0, stream=stream)
    with pytest.raises(FaultError) as caught:
        await (text_of(run) if stream else run.whole())
    assert caught.value.fault.code == "engine_failed"
    await hub.idle()
    assert (ended(hub).state, ended(hub).status) == ("failed", 502)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_of_ours_ends_the_run_and_is_no_clients_fault(
    hub: ScriptedHub, stream: bool, n: int
) -> None:
    hub.starter.reply = lambda _: Script([piece("x"), 0.01, KeyError("a bug")])
    run = await open_run(hub, stream=stream, n=n)
    with pytest.raises(KeyError):
        await asyncio.wait_for(text_of(run) if stream else run.whole(), 2)
    view = ended(hub)
    assert (view.state, view.status) == ("failed", 500)
    assert view.fault is not None
    assert view.fault.code == "internal_error"
    assert "a bug" not in view.fault.message
    await hub.idle()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script(status=400, body=b'{"error":{"message":"bad grammar"}}'), "engine_rejected"),
        (
            Script(
                status=400,
                body=b'{"error":{"type":"exceed_context_size_error","n_prompt_tokens":900,"n_ctx":512}}',
            ),
            "context_length_exceeded",
        ),
        (Script(status=500, body=b"not json"), "engine_failed"),
        (Script([piece("x")]), "engine_failed"),  # ends in the middle
        (Script([b'{"error":{"code":500,"message":"out of memory"}}']), "engine_failed"),
        (Script([b"no json"]), "engine_failed"),
        (Script([]), "engine_failed"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_engines_do_wrong(hub: ScriptedHub, script: Script, code: str, stream: bool) -> None:
    hub.starter.reply = lambda _: script
    run = await open_run(hub, stream=stream)
    with pytest.raises(FaultError) as caught:
        await (text_of(run) if stream else run.whole())
    assert caught.value.fault.code == code
    view = ended(hub)
    assert (view.state, view.status) == ("failed", caught.value.fault.rule.status)
    await hub.idle()
    hub.starter.reply = lambda _: answer("fine")
    assert b"fine" in await (await open_run(hub, "next")).whole()


async def test_the_reason_of_a_death_is_told_not_the_broken_connection(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: Script([piece("x"), asyncio.Event()])
    runs = [asyncio.create_task(whole(hub, f"r{i}")) for i in range(4)]  # two wait for a slot
    await hub.until(lambda: hub.starter.open == 2 and waiting_for_slots(hub))
    hub.starter.crash("tiny", "it was killed (SIGKILL)")
    results = await asyncio.gather(*runs, return_exceptions=True)
    for result in results:
        assert isinstance(result, FaultError)
        assert "SIGKILL" in result.fault.message
        assert result.fault.retry_after == 2
    await hub.idle()
    hub.starter.reply = lambda _: answer("back")
    assert b"back" in await (await open_run(hub, "next")).whole()


@pytest.mark.parametrize("phase", ["loading", "queued", "prefill", "generating"])
@pytest.mark.parametrize("stream", [False, True])
async def test_leaving_in_every_phase_frees_everything(hub: ScriptedHub, stream: bool, phase: str) -> None:
    gate = asyncio.Event()
    hub.starter.reply = lambda _: Script([gate] if phase == "prefill" else [piece("x"), gate])
    if phase == "loading":
        hub.starter.gate.clear()
    others = []
    if phase == "queued":
        others = [asyncio.create_task(whole(hub, f"o{i}")) for i in range(2)]
        await hub.until(lambda: hub.starter.open == 2)
    run = await open_run(hub, stream=stream)
    task = asyncio.create_task(text_of(run) if stream else run.whole())
    await hub.until(lambda: run.record.state == phase and (phase != "queued" or waiting_for_slots(hub)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    view = next(view for view in hub.journal.view().recent if view.id == "r")
    assert (view.state, view.status) == ("cancelled", 499)
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await hub.idle()


async def test_a_stream_that_is_closed_unread_ends_too(hub: ScriptedHub) -> None:
    run = await open_run(hub, stream=True)
    generator = run.frames()
    await generator.aclose()
    run.leave()
    assert ended(hub).status == 499
    run = await open_run(hub, "half", stream=True, n=2)
    generator = run.frames()
    await anext(generator)
    await generator.aclose()
    assert ended(hub, "half").status == 499
    await hub.idle()


async def test_a_slow_reader_of_many_choices_holds_no_more_than_a_bound(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: answer(*["x"] * 500)
    run = await open_run(hub, stream=True, n=2)
    generator = run.frames()
    await anext(generator)
    await asyncio.sleep(0.05)
    assert run.record.completion_tokens < 100
    await generator.aclose()
    await hub.idle()


async def test_running_answers_end_with_the_nodes_reason(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: Script([piece("x"), asyncio.Event()])
    runs = [asyncio.create_task(whole(hub, f"r{i}")) for i in range(3)]
    await hub.until(lambda: hub.starter.open == 2 and waiting_for_slots(hub))
    hub.pool.refuse_all(Fault("shutting_down", "the hub is stopping", retry_after=5))
    await hub.pool.close()
    for result in await asyncio.gather(*runs, return_exceptions=True):
        assert isinstance(result, FaultError)
        assert result.fault.code == "shutting_down"
    assert hub.journal.in_flight == 0


async def test_a_far_server_gets_only_openai_fields_and_its_cache_is_its_own(hub: ScriptedHub) -> None:
    await hub.add("far", kind="url", url="http://127.0.0.1:9/v1", slots=2)
    hub.starter.reply = lambda _: Script([piece("x"), piece(None, "stop"), usage(9, 1, cached=8)])
    whole = json.loads(await (await open_run(hub, model="far")).whole())
    body = hub.starter.engine("far").bodies[0]
    assert not {"id_slot", "cache_prompt", "return_progress"} & set(body)
    assert "prompt_tokens_details" not in whole["usage"]
    assert ended(hub).cached_tokens == 0
