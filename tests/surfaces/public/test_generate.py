from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import EnvError, PeerError
from relaydesk.surfaces.public import generate as module
from tests.support.raw_http import RawClient
from tests.support.scripted_engine import Script, answer, piece
from tests.support.scripted_hub import KEY, ScriptedHub, frames, texts

CHAT = "/v1/chat/completions"
OVERFLOW = Script(
    status=400,
    body=b'{"error":{"code":400,"type":"exceed_context_size_error","message":"too long",'
    b'"n_prompt_tokens":900,"n_ctx":512}}',
)


def code_of(body: Any) -> str:
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    code: str = error["code"]
    return code


async def test_a_stream_is_one_data_line_an_event_and_ends_with_done(hub: ScriptedHub) -> None:
    status, headers, text = await hub.chat(stream=True)
    assert status == 200
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert texts(text) == "Hello there"
    assert frames(text)[-1] == "[DONE]"
    assert text.endswith("data: [DONE]\n\n")
    assert "/models/" not in text
    assert "timings" not in text
    await hub.idle()


async def test_a_whole_answer(hub: ScriptedHub) -> None:
    status, headers, body = await hub.chat()
    assert (status, headers["content-type"]) == (200, "application/json")
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Hello there"}
    assert body["usage"]["total_tokens"] == 7


@pytest.mark.parametrize("stream", [False, True])
async def test_no_model_named(empty: ScriptedHub, stream: bool) -> None:
    status, _, body = await empty.chat(stream=stream)
    assert (status, code_of(body), body["error"]["param"]) == (400, "invalid_request", "model")
    await empty.add("one")
    assert (await empty.chat(stream=stream))[0] == 200
    await empty.add("two")
    status, _, body = await empty.chat(stream=stream)
    assert (status, code_of(body)) == (400, "invalid_request")
    assert "one, two" in body["error"]["message"]
    assert (await empty.chat(stream=stream, model="two"))[0] == 200
    assert code_of((await empty.chat(stream=stream, model="three"))[2]) == "model_not_found"


GUIDE = "free VRAM on the host or pick a smaller/more-quantized model"
SEED = {
    # More than there is in all; by its own memory, and where it may not leave the host.
    (50, False): '\\"tiny\\" needs about 83 MB and the whole pool tops out at 50 MB',
    (
        100,
        False,
    ): '\\"tiny\\" needs about 83 MB VRAM: the host has 17 MB free, the best node has 0 MB free, and '
    "the pool aggregate (17 MB) is not enough to shard it either — free VRAM, add a node, or pick a "
    "smaller/more-quantized model",
    (
        100,
        True,
    ): '\\"tiny\\" is host-only (a privacy setting — it never leaves this hub, not even as a shard): '
    f"needs about 83 MB VRAM, the host has 17 MB free — {GUIDE}",
}


@pytest.mark.parametrize(("memory", "host_only"), SEED)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_three_refusals_byte_for_byte(
    tmp_path: Path, memory: int, host_only: bool, stream: bool
) -> None:
    async with ScriptedHub(tmp_path, memory_mib=memory) as hub:
        await hub.add("tiny", host_only=host_only)
        if memory == 100:
            await hub.add("kept", keep_alive_s=-1)
            await hub.warm("kept")
        async with hub.session.post(
            f"{hub.url}{CHAT}",
            json={"model": "tiny", "stream": stream, "messages": [{"role": "user", "content": "x"}]},
        ) as reply:
            body = await reply.read()
            assert reply.status == 503
            assert reply.headers["x-should-retry"] == "false"
            assert "Retry-After" not in reply.headers
        message = SEED[memory, host_only]
        expected = (
            f'{{"error":{{"message":"{message}","type":"model_unavailable","code":"model_unavailable"}}}}'
        )
        assert body == expected.encode()
        assert hub.starter.alive == (["kept"] if memory == 100 else [])


async def test_headers_of_a_cold_stream_come_at_once_and_silence_is_only_comments(hub: ScriptedHub) -> None:
    hub.heartbeat_s = 0.03
    hub.starter.gate.clear()
    hub.starter.reply = lambda _: Script([0.1, *answer("late").steps], before=[0.1])
    async with RawClient(hub.port, KEY) as client:
        body = b'{"stream":true,"messages":[{"role":"user","content":"x"}]}'
        client.head("POST", CHAT, {"Content-Length": str(len(body))})
        client.send(body)
        assert (await client.reply(within=0.5)).status == 200
        beats = []
        while len(beats) < 3:
            line = await client.line(within=0.5)
            if line.startswith(b":"):
                beats.append(line)
            else:
                assert not line.startswith(b"data")
        assert set(beats) == {b": keep-alive\n"}
        hub.starter.gate.set()
        while b"late" not in (line := await client.line()):
            assert not line.startswith(b"data: {") or b'"role"' in line
    await hub.idle()


async def test_what_fails_after_the_headers_is_one_frame_and_the_end(hub: ScriptedHub) -> None:
    hub.starter.load_s = 0.05
    hub.starter.errors.append(EnvError("model_load_failed", "the engine said no", "try another"))
    status, _, text = await hub.chat(stream=True)
    assert status == 200
    (only,) = frames(text)
    assert code_of(only) == "model_load_failed"
    assert only["error"]["message"] == "the engine said no: try another"
    await asyncio.sleep(0.15)
    hub.starter.reply = lambda _: Script([piece("a"), 0.01, PeerError("engine_failed", "it broke")])
    status, _, text = await hub.chat(stream=True)
    assert status == 200
    assert texts(text) == "a"
    assert code_of(frames(text)[-1]) == "engine_failed"
    assert "[DONE]" not in text
    assert 'finish_reason":"' not in text


async def test_a_failure_of_ours_after_the_headers_is_a_frame_without_details(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: Script([piece("a"), 0.05, RuntimeError("hunter2")])
    for n in (1, 2):
        status, headers, text = await hub.chat(stream=True, n=n)
        assert status == 200
        last = frames(text)[-1]
        assert code_of(last) == "internal_error"
        assert headers["x-request-id"] in last["error"]["message"]
        assert "hunter2" not in text
    status, _, body = await hub.chat()
    assert (status, code_of(body)) == (500, "internal_error")
    await hub.idle()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_overflow_of_a_warm_model_is_a_400(hub: ScriptedHub, stream: bool) -> None:
    await hub.warm()
    hub.starter.reply = lambda _: replace_before(OVERFLOW, 0.2)
    status, headers, body = await hub.chat(stream=stream)
    assert (status, code_of(body)) == (400, "context_length_exceeded")
    assert "512" in body["error"]["message"]
    assert "900" in body["error"]["message"]
    assert headers["x-should-retry"] == "false"


def replace_before(script: Script, seconds: float) -> Script:
    return replace(script, before=[seconds])


async def test_a_warm_models_first_event_is_waited_for_no_longer_than_a_second(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.FIRST_EVENT_WAIT_S < 1
    monkeypatch.setattr(module, "FIRST_EVENT_WAIT_S", 0.05)
    await hub.warm()
    hub.starter.reply = lambda _: replace_before(OVERFLOW, 0.2)
    status, _, text = await hub.chat(stream=True)
    assert status == 200
    assert code_of(frames(text)[-1]) == "context_length_exceeded"


async def test_an_unstreamed_request_has_the_status_of_its_outcome(hub: ScriptedHub) -> None:
    hub.starter.errors.append(EnvError("model_load_timeout", "it took too long"))
    status, headers, body = await hub.chat()
    assert (status, code_of(body)) == (503, "model_load_timeout")
    status, headers, body = await hub.chat()
    assert (status, headers["retry-after"]) == (503, "1")
    await asyncio.sleep(0.15)
    hub.starter.reply = lambda _: Script([piece("x"), PeerError("engine_failed", "it broke")])
    status, headers, body = await hub.chat()
    assert (status, code_of(body)) == (502, "engine_failed")
    assert "x-should-retry" not in headers


async def test_a_full_queue_is_a_429_with_a_time(hub: ScriptedHub) -> None:
    hub.limits = replace(hub.limits, queue=1)
    gate = asyncio.Event()
    hub.starter.reply = lambda _: Script([gate, *answer("x").steps])
    await hub.warm()
    tasks = [asyncio.create_task(hub.chat()) for _ in range(3)]
    await hub.until(lambda: hub.starter.open == 2 and slots(hub).waiting == 1)
    for stream in (False, True):
        status, headers, body = await hub.chat(stream=stream)
        assert (status, code_of(body), headers["retry-after"]) == (429, "queue_full", "5")
    gate.set()
    assert [(await task)[0] for task in tasks] == [200] * 3


def slots(hub: ScriptedHub) -> Any:
    return hub.pool.runner("tiny").slots


@pytest.mark.parametrize("stream", [False, True])
async def test_a_stopping_hub_takes_nothing(hub: ScriptedHub, stream: bool) -> None:
    hub.accepting = False
    status, headers, body = await hub.chat(stream=stream)
    assert (status, code_of(body), headers["retry-after"]) == (503, "shutting_down", "5")


@pytest.mark.parametrize("phase", ["loading", "queued", "prefill", "generating"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_in_any_phase_frees_its_place(
    hub: ScriptedHub, stream: bool, phase: str
) -> None:
    gate = asyncio.Event()
    hub.starter.reply = lambda _: Script([gate] if phase == "prefill" else [piece("x"), gate])
    if phase == "loading":
        hub.starter.gate.clear()
    else:
        await hub.warm()
    others = []
    if phase == "queued":
        others = [asyncio.create_task(hub.chat()) for _ in range(2)]
        await hub.until(lambda: hub.starter.open == 2)
    async with RawClient(hub.port, KEY) as client:
        body = json.dumps({"stream": stream, "messages": [{"role": "user", "content": "x"}]}).encode()
        client.head("POST", CHAT, {"Content-Length": str(len(body)), "x-request-id": "me"})
        client.send(body)
        await hub.until(
            lambda: (
                (view := hub.journal.find("me")) is not None
                and view.state == phase
                and (phase != "queued" or slots(hub).waiting == 1)
            )
        )
        client.abort()
        await hub.until(lambda: (view := hub.journal.find("me")) is not None and view.status, within=1)
    view = hub.journal.find("me")
    assert view is not None
    assert (view.state, view.status) == ("cancelled", 499)
    gate.set()
    for other in others:
        await other
    await hub.idle()


async def test_choices_of_a_stream_are_merged_and_one_that_fails_ends_all(hub: ScriptedHub) -> None:
    _, _, text = await hub.chat(stream=True, n=3, stream_options={"include_usage": True})
    assert [texts(text, i) for i in range(3)] == ["Hello there"] * 3
    assert frames(text)[-2]["usage"]["completion_tokens"] == 6
    gate = asyncio.Event()

    def reply(body: dict[str, Any]) -> Script:
        if body["seed"] == 1:
            return Script([piece("bad"), 0.05, PeerError("engine_failed", "it broke")])
        return Script([piece("good"), gate])

    hub.starter.reply = reply
    _, _, text = await hub.chat(stream=True, n=2, seed=0)
    assert texts(text, 0) == "good"
    assert texts(text, 1) == "bad"
    assert code_of(frames(text)[-1]) == "engine_failed"
    assert sum("error" in frame for frame in frames(text) if isinstance(frame, dict)) == 1
    assert "[DONE]" not in text
    await hub.idle()


async def test_a_client_that_takes_nothing_is_dropped(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STALL_S", 0.2)
    hub.starter.reply = lambda _: answer(*["x" * 20_000] * 2000)
    async with RawClient(hub.port, KEY) as client:
        body = b'{"stream":true,"messages":[{"role":"user","content":"x"}]}'
        client.head("POST", CHAT, {"Content-Length": str(len(body)), "x-request-id": "me"})
        client.send(body)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await hub.until(lambda: (view := hub.journal.find("me")) is not None and view.status, within=5)
    view = hub.journal.find("me")
    assert view is not None
    assert (view.state, view.status) == ("cancelled", 499)
    await hub.idle()


async def test_many_clients_at_once_start_one_engine_and_all_are_answered(hub: ScriptedHub) -> None:
    hub.starter.load_s = 0.05
    replies = await asyncio.gather(*(hub.chat(stream=bool(number % 2)) for number in range(40)))
    assert {status for status, _, _ in replies} == {200}
    assert len(hub.starter.starts) == 1
    assert hub.starter.engine("tiny").most_open == 2
    assert hub.journal.requests_total == 40
    await hub.idle()


async def test_a_client_that_takes_nothing_is_cut_off(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never reads and never leaves: its slot must not be its own for ever."""
    monkeypatch.setattr(module, "STALL_S", 0.3)
    hub.heartbeat_s = 0.05
    hub.starter.reply = lambda _body: answer(*["x" * 100_000] * 400)
    async with RawClient(hub.port, KEY) as client:
        client.reader.feed_eof()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "stream": True}).encode()
        client.head("POST", CHAT, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        client.send(body)
        await hub.until(lambda: hub.starter.open == 1, 3)
        await hub.idle(5)
    hub.starter.reply = lambda _body: answer("again")
    assert (await hub.chat())[0] == 200
