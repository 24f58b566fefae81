"""The routes of the translated dialects, from a client's bytes to an engine's and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.pieces import events
from tests.support.raw_http import RawClient
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.scripted_hub import KEY, ScriptedHub

RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
ASKED: dict[str, dict[str, Any]] = {
    RESPONSES: {"input": "Hi"},
    MESSAGES: {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
}
OVERFLOW = Script(
    status=400,
    body=b'{"error":{"code":400,"type":"exceed_context_size_error","message":"too long",'
    b'"n_prompt_tokens":900,"n_ctx":512}}',
)


async def ask(hub: ScriptedHub, path: str, **fields: Any) -> tuple[int, dict[str, str], bytes]:
    async with hub.session.post(hub.url + path, json={**ASKED[path], **fields}) as reply:
        return (
            reply.status,
            {name.lower(): value for name, value in reply.headers.items()},
            await reply.read(),
        )


def texts(path: str, body: Any) -> str:
    if path == MESSAGES:
        return "".join(block["text"] for block in body["content"])
    return "".join(part["text"] for item in body["output"] for part in item["content"])


@pytest.mark.parametrize("path", ASKED)
async def test_streamed_and_whole(hub: ScriptedHub, path: str) -> None:
    status, headers, body = await ask(hub, path)
    assert (status, headers["content-type"]) == (200, "application/json")
    whole = json.loads(body)
    assert texts(path, whole) == "Hello there"
    assert whole["usage"]["input_tokens"] + whole["usage"].get("cache_read_input_tokens", 0) == 5
    assert whole["usage"]["output_tokens"] == 2

    status, headers, body = await ask(hub, path, stream=True)
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert headers["x-request-id"]
    seen = events(body)
    delta = "content_block_delta" if path == MESSAGES else "response.output_text.delta"
    said = [event["delta"] for event in seen if event["type"] == delta]
    assert "".join(each if isinstance(each, str) else each["text"] for each in said) == "Hello there"
    assert seen[-1]["type"] == ("message_stop" if path == MESSAGES else "response.completed")
    assert b"secret" not in body
    engine = hub.starter.engine("tiny")
    assert [asked["messages"] for asked in engine.bodies] == [[{"role": "user", "content": "Hi"}]] * 2
    await hub.idle()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_overflow_is_said_in_each_dialects_words(hub: ScriptedHub, stream: bool) -> None:
    await hub.warm()
    hub.starter.reply = lambda _: OVERFLOW
    status, _, body = await ask(hub, RESPONSES, stream=stream)
    error = json.loads(body)["error"]
    assert (status, error["code"], error["param"]) == (400, "context_length_exceeded", "input")
    status, _, body = await ask(hub, MESSAGES, stream=stream)
    error = json.loads(body)["error"]
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].count("prompt is too long") == 1
    assert "maximum context length is 512 tokens" in error["message"]


@pytest.mark.parametrize("path", ASKED)
async def test_what_fails_later_is_an_event(hub: ScriptedHub, path: str) -> None:
    await hub.warm()
    hub.starter.reply = lambda _: Script([piece("Hel"), piece("lo")])
    status, _, body = await ask(hub, path, stream=True)
    assert status == 200
    last = events(body)[-1]
    assert last["type"] == "error"
    assert last["error"]["message"] == "the engine stopped in the middle of the answer"
    status, _, body = await ask(hub, path)
    assert status == 502
    await hub.idle()


@pytest.mark.parametrize("path", ASKED)
async def test_a_cold_models_silence_is_filled_and_its_failure_told(hub: ScriptedHub, path: str) -> None:
    hub.heartbeat_s = 0.03
    hub.starter.reply = lambda _: Script([0.1, *answer("late").steps])
    _, _, body = await ask(hub, path, stream=True)
    filling = b"event: ping\n" if path == MESSAGES else b": keep-alive\n"
    assert body.startswith(filling)
    assert [event["type"] for event in events(body)][-1] in ("message_stop", "response.completed")


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id is not supported"),
        (RESPONSES, {"tools": [{"type": "web_search"}]}, "tools[0].type 'web_search' is not supported"),
        (RESPONSES, {"model": "nope"}, "'nope'"),
        (MESSAGES, {"max_tokens": None}, "max_tokens is missing"),
        (MESSAGES, {"model": "nope"}, "'nope'"),
    ],
)
async def test_refusals(hub: ScriptedHub, path: str, fields: Any, says: str) -> None:
    status, headers, body = await ask(hub, path, **fields)
    assert status == (404 if "model" in fields else 400)
    assert headers["x-should-retry"] == "false"
    decoded = json.loads(body)
    assert says in decoded["error"]["message"]
    assert set(decoded) == ({"type", "error"} if path == MESSAGES else {"error"})
    assert hub.starter.starts == []


@pytest.mark.parametrize("path", ASKED)
async def test_a_key_is_needed(hub: ScriptedHub, path: str) -> None:
    async with RawClient(hub.port, None) as client:
        client.head("POST", path)
        reply = await client.reply()
    assert reply.status == 401
    assert reply.json["error"]["type"] == "authentication_error"


async def test_the_wrong_method_and_what_lies_below_messages(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, KEY) as client:
        for method, path, status in (("GET", MESSAGES, 405), ("POST", f"{MESSAGES}/batches", 404)):
            client.head(method, path)
            reply = await client.reply()
            assert reply.status == status
            assert reply.json["type"] == "error"


async def test_a_response_is_not_kept(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, KEY) as client:
        for method, path in (
            ("GET", "resp_1"),
            ("DELETE", "resp_1"),
            ("POST", "resp_1/cancel"),
            ("GET", "resp_1/input_items?limit=3"),
        ):
            client.head(method, f"{RESPONSES}/{path}")
            reply = await client.reply()
            assert (reply.status, reply.code) == (404, "not_found")
            assert "not kept" in reply.json["error"]["message"]


async def test_calls_of_an_engine_in_both_dialects(hub: ScriptedHub) -> None:
    calls = [
        {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"x":'}},
        {"index": 0, "function": {"arguments": "1}"}},
    ]
    deltas = [
        json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).encode() for call in calls
    ]
    await hub.warm()
    hub.starter.reply = lambda _: Script([*deltas, piece(None, "tool_calls"), usage(5, 9)])
    (item,) = json.loads((await ask(hub, RESPONSES))[2])["output"]
    assert (item["type"], item["call_id"], item["arguments"]) == ("function_call", "c", '{"x":1}')
    body = json.loads((await ask(hub, MESSAGES))[2])
    assert body["content"] == [{"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}}]
    assert body["stop_reason"] == "tool_use"
