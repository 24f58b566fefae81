"""Client-side bug reports about such servers, each as a request to ours (ids: B01 …).

Tests that are written for nothing else are here, against the whole gateway over scripted engines, and in
``tests/e2e/test_client_reports.py`` where only a real engine shows it. ``tests/clients/test_reports_held.py``
has the table of all reports and the tests that hold them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
from typing import Any

import aiohttp
import msgspec
import pytest

from relaydesk.core.errors import EnvError, PeerError
from relaydesk.core.gateway.sse import SseParser
from tests.support.raw_http import RawClient
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.scripted_hub import KEY, ScriptedHub, frames, texts


def call(index: int | None, call_id: str | None, name: str | None, arguments: str) -> bytes:
    """A chunk with a piece of one tool call."""
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    delta = {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return msgspec.json.encode({"choices": [choice], "object": "chat.completion.chunk"})


TOOLS: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
TWO_CALLS = [
    *(call(0, "a", "f", ""), call(0, None, None, '{"x"'), call(0, None, None, ":1}")),
    call(0, "b", "f", '{"x":2}'),
]


async def far(hub: ScriptedHub) -> dict[str, Any]:
    """A model that takes tools; fields that ask for it."""
    await hub.add("far", kind="url", url="http://far.example")
    return {"model": "far", "tools": TOOLS}


@pytest.mark.parametrize(
    "calls",
    [
        TWO_CALLS,
        [call(None, "a", "f", '{"x":1}'), call(None, "b", "f", '{"x":2}')],
        [call(0, "a", "f", '{"x":1}'), call(0, "a", "f", ""), call(1, "b", "f", '{"x":2}')],
    ],
    ids=["index always 0", "no index", "id and name again"],
)
async def test_b01_two_calls_stay_two(hub: ScriptedHub, calls: list[bytes]) -> None:
    asked = await far(hub)
    hub.starter.reply = lambda _: Script([*calls, piece(None, "tool_calls"), usage(5, 9)])
    _, _, text = await hub.chat(**asked, stream=True)
    deltas = [
        delta
        for frame in frames(text)[:-1]
        for choice in frame["choices"]
        for delta in choice["delta"].get("tool_calls", ())
    ]
    joined = {0: "", 1: ""}
    for delta in deltas:
        joined[delta["index"]] += delta["function"].get("arguments", "")
    assert joined == {0: '{"x":1}', 1: '{"x":2}'}
    named = [delta for delta in deltas if "id" in delta]
    assert [(delta["index"], delta["function"]["name"]) for delta in named] == [(0, "f"), (1, "f")]
    assert len({delta["id"] for delta in named}) == 2
    assert all(set(delta) == {"index", "function"} for delta in deltas if delta not in named)
    assert all(set(delta["function"]) == {"arguments"} for delta in deltas if delta not in named)

    _, _, body = await hub.chat(**asked)
    whole = body["choices"][0]["message"]["tool_calls"]
    assert [each["function"]["arguments"] for each in whole] == ['{"x":1}', '{"x":2}']


async def test_b01_arguments_in_the_history_that_are_no_json(hub: ScriptedHub) -> None:
    asked = await far(hub)
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}{"x":2}'}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "y"},
    ]
    status, _, body = await hub.chat(**asked, messages=messages)
    assert status == 400
    assert body["error"]["param"].startswith("messages[1].tool_calls[0]")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([*TWO_CALLS, piece(None, "tool_calls")], "tool_calls"),
        ([piece("Hello"), piece(None, "stop")], "stop"),
        ([piece("Hello"), piece(None, "length")], "length"),
        ([call(0, "a", "f", '{"x"'), piece(None, "length")], "length"),
        # As some servers say it where the call was forced.
        ([*TWO_CALLS, piece(None, "stop")], "tool_calls"),
    ],
    ids=["calls", "text", "limit", "half a call", "calls and stop"],
)
async def test_b02_why_an_answer_ended(
    hub: ScriptedHub, steps: list[bytes], reason: str, stream: bool
) -> None:
    asked = await far(hub)
    hub.starter.reply = lambda _: Script([*steps, usage(5, 9)])
    _, _, got = await hub.chat(**asked, stream=stream)
    if stream:
        assert frames(got)[-1] == "[DONE]"
        reasons = [c["finish_reason"] for frame in frames(got)[:-1] for c in frame["choices"]]
        assert reasons[-1] == reason
        assert set(reasons[:-1]) == {None}
    else:
        assert got["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize(
    "failure",
    [
        PeerError("engine_failed", "it broke"),
        b'{"error":{"message":"it broke","type":"server_error","code":500}}',
        b'{"error":"it broke"}',
    ],
    ids=["breaks", "says so", "says so in one word"],
)
async def test_b05_a_failure_behind_the_headers_is_the_last_frame(
    hub: ScriptedHub, failure: Exception | bytes
) -> None:
    hub.starter.reply = lambda _: Script([piece("a"), piece("b"), 0.01, failure])
    status, headers, text = await hub.chat(stream=True)
    assert (status, texts(text)) == (200, "ab")
    last = frames(text)[-1]
    assert set(last) == {"error"}
    assert "it broke" in last["error"]["message"]
    assert last["error"]["code"] == "engine_failed"
    assert all(c["finish_reason"] is None for frame in frames(text)[:-1] for c in frame["choices"])
    view = hub.journal.find(headers["x-request-id"])
    assert view is not None
    assert (view.state, view.status, view.completion_tokens) == ("failed", 502, 2)
    await hub.idle()


@pytest.mark.parametrize(("options", "said"), [({"include_usage": True}, 1), ({}, 0), (None, 0), ("no", 0)])
async def test_b06_usage_is_said_once_and_only_where_asked(hub: ScriptedHub, options: Any, said: int) -> None:
    given = {} if options == "no" else {"stream_options": options}
    _, headers, text = await hub.chat(stream=True, **given)
    with_usage = [frame for frame in frames(text)[:-1] if "usage" in frame]
    assert len(with_usage) == said
    if said:
        assert frames(text)[-2] == with_usage[0]
        assert with_usage[0]["choices"] == []
        assert with_usage[0]["usage"]["total_tokens"] == 5 + 2
    view = hub.journal.find(headers["x-request-id"])
    assert view is not None
    assert (view.prompt_tokens, view.completion_tokens) == (5, 2)


async def test_b08_a_byte_that_is_no_character_becomes_one_mark(hub: ScriptedHub) -> None:
    asked = await far(hub)
    sent = b"data: " + piece("aXb").replace(b"X", b"\xff") + b"\n\n"
    (bad,) = [event.data for event in SseParser().feed(sent)]  # as every engine's stream is read
    hub.starter.reply = lambda _: Script([bad, piece("c"), piece(None, "stop"), usage(1, 2)])
    body = {**asked, "messages": [{"role": "user", "content": "x"}]}
    for stream in (False, True):
        async with hub.session.post(
            f"{hub.url}/v1/chat/completions", json={**body, "stream": stream}
        ) as reply:
            text = (await reply.read()).decode()
        said = texts(text) if stream else json.loads(text)["choices"][0]["message"]["content"]
        assert said == "a\ufffdbc"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
async def test_b11_nothing_on_the_way_has_a_reason_to_hold_a_stream_back(hub: ScriptedHub, path: str) -> None:
    gate = asyncio.Event()
    hub.starter.reply = lambda _: Script([piece("one"), gate, *answer("two").steps])
    asked = {"model": "tiny", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    body = json.dumps(asked).encode()
    async with RawClient(hub.port, KEY) as client:
        given = {"Content-Length": str(len(body)), "Accept-Encoding": "gzip, br"}
        client.head("POST", path, given)
        client.send(body)
        headers = (await client.reply()).headers
        assert headers["x-accel-buffering"] == "no"
        assert headers["cache-control"] == "no-cache, no-transform"
        assert not {"content-length", "content-encoding"} & set(headers)
        # The first token is here before there is a second.
        async with asyncio.timeout(2):
            while b'"one"' not in await client.line():
                assert not gate.is_set()
        gate.set()
    await hub.idle()


async def lines_of(hub: ScriptedHub, path: str = "/api/chat", **fields: Any) -> tuple[int, Any, list[Any]]:
    """An answer in Ollama's dialect: status, headers, and every line decoded."""
    said = {"prompt": "x"} if path == "/api/generate" else {"messages": [{"role": "user", "content": "x"}]}
    async with hub.session.post(hub.url + path, json={"model": "tiny", **said, **fields}) as reply:
        text = await reply.text()
        assert text.endswith("\n") or reply.content_type == "application/json"
        # Blank lines end some clients: there are none.
        return reply.status, reply.headers, [json.loads(line) for line in text.removesuffix("\n").split("\n")]


@pytest.mark.parametrize("stream", [False, True])
async def test_b02_calls_end_with_stop_in_ollamas_words(hub: ScriptedHub, stream: bool) -> None:
    asked = await far(hub)
    hub.starter.reply = lambda _: Script([*TWO_CALLS, piece(None, "tool_calls"), usage(5, 9)])
    _, _, lines = await lines_of(hub, **asked, stream=stream)
    calls = [call["function"] for line in lines for call in line["message"].get("tool_calls", ())]
    assert [(each["name"], each["arguments"]) for each in calls] == [("f", {"x": 1}), ("f", {"x": 2})]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1]["done_reason"] == "stop"


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
async def test_b05_a_failure_in_a_stream_of_lines_is_the_last_line(hub: ScriptedHub, path: str) -> None:
    hub.starter.reply = lambda _: Script(
        [piece("a"), piece("b"), 0.01, PeerError("engine_failed", "it broke")]
    )
    status, headers, lines = await lines_of(hub, path)
    assert status == 200
    assert set(lines[-1]) == {"error"}
    assert "it broke" in lines[-1]["error"]
    assert [line["done"] for line in lines[:-1]] == [False, False]
    view = hub.journal.find(headers["x-request-id"])
    assert view is not None
    assert (view.state, view.status) == ("failed", 502)
    await hub.idle()


async def test_b15_lines_are_never_empty_however_long_the_silence(hub: ScriptedHub) -> None:
    hub.heartbeat_s = 0.02
    hub.starter.gate.clear()
    hub.starter.reply = lambda _: Script([0.1, piece("a"), 0.1, piece("b"), piece(None, "stop"), usage(1, 2)])
    asked = asyncio.create_task(lines_of(hub))
    await asyncio.sleep(0.1)
    hub.starter.gate.set()
    status, headers, lines = await asked
    assert status == 200
    assert headers["content-type"].startswith("application/x-ndjson")
    assert "".join(line["message"]["content"] for line in lines) == "ab"
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert not any({"error", "type"} & set(line) for line in lines)


LEGAL = {
    "null": {"content": None, "tool_calls": "calls"},
    "no content": {"tool_calls": "calls"},
    "empty": {"content": ""},
    "parts": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
}


@pytest.mark.parametrize("name", LEGAL)
async def test_b13_legal_assistant_messages(hub: ScriptedHub, name: str) -> None:
    asked = await far(hub)
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    message: dict[str, Any] = {"role": "assistant", **LEGAL[name]}
    if "tool_calls" in message:
        message["tool_calls"] = calls
    part = [{"type": "text", "text": "a"}]
    messages = [
        {"role": "system", "content": part},
        {"role": "user", "content": part},
        message,
        *([{"role": "tool", "tool_call_id": "a", "content": part}] if "tool_calls" in message else []),
        {"role": "user", "content": "b"},
    ]
    assert (await hub.chat(**asked, messages=messages))[0] == 200
    sent = hub.starter.engine("far").bodies[0]["messages"]
    assert [each["role"] for each in sent] == [each["role"] for each in messages]
    kept = sent[2]
    if "tool_calls" in message:
        assert [each["function"] for each in kept["tool_calls"]] == [calls[0]["function"]]
    else:
        assert kept["content"] == ("" if name == "empty" else "a\nb")
    assert sent[0]["content"] == sent[1]["content"] == "a"


async def test_b14_developer_is_system_and_an_invented_role_is_named(hub: ScriptedHub) -> None:
    turns = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]
    for messages, system in ((turns, "Be kind.\n\nBe brief."), (turns[1:], "Be brief.")):
        assert (await hub.chat(messages=messages))[0] == 200
        sent = hub.starter.engine("tiny").bodies[-1]["messages"]
        assert sent == [{"role": "system", "content": system}, {"role": "user", "content": "hi"}]
    status, _, body = await hub.chat(messages=[{"role": "wizard", "content": "hi"}])
    assert status == 400
    assert body["error"]["param"] == "messages[0].role"
    assert "wizard" in body["error"]["message"]


async def test_b18_unknown_and_null_fields_pass_and_wrong_types_do_not(hub: ScriptedHub) -> None:
    asked = await far(hub)
    nothing = ("stop", "seed", "response_format", "max_tokens", "stream_options", "tool_choice", "n")
    message = {
        "role": "user",
        "content": "x",
        "id": "1",
        "opts": {},
        "name": "me",
        "cache_control": {"type": "x"},
    }
    strict = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": False}}]
    status, _, _ = await hub.chat(
        model="far", messages=[message], tools=strict, foo=1, **dict.fromkeys(nothing)
    )
    assert status == 200
    assert (await hub.chat(**{**asked, "tools": None}))[0] == 200
    for field, value in (("temperature", "hot"), ("max_tokens", "many"), ("stream", "yes"), ("tools", {})):
        status, _, body = await hub.chat(**{**asked, field: value})
        assert (status, body["error"]["param"]) == (400, field)


async def test_b26_no_slot_is_lost_however_requests_end(empty: ScriptedHub) -> None:
    """One slot, and twenty requests that end in the middle of something."""
    hub = empty
    await hub.add("one", slots=1)
    luck = random.Random(26)
    gate = asyncio.Event()
    endings: list[Any] = [gate, PeerError("engine_failed", "it broke"), RuntimeError("ours")]
    hub.starter.reply = lambda _: Script([piece("x")] * luck.randrange(3) + [0.002, luck.choice(endings)])

    async def leave(wait: float) -> None:
        async with RawClient(hub.port, KEY) as client:
            body = json.dumps(
                {"stream": luck.random() < 0.5, "messages": [{"role": "user", "content": "x"}]}
            ).encode()
            client.head("POST", "/v1/chat/completions", {"Content-Length": str(len(body))})
            client.send(body)
            await asyncio.sleep(wait)

    # The first ones leave during the load.
    hub.starter.load_s = 0.02
    for _ in range(20):
        await leave(luck.random() * 0.02)
    await hub.idle()
    hub.starter.reply = lambda _: answer("Hello")
    await hub.until(lambda: hub.pool.runner("one").life.in_flight == 0)
    assert (await hub.chat())[0] == 200
    assert hub.journal.in_flight == 0


async def test_b33_a_load_that_takes_too_long_is_a_503_with_a_time(hub: ScriptedHub) -> None:
    hub.starter.errors.append(EnvError("model_load_timeout", "it took longer than it may"))
    status, headers, body = await hub.chat()
    assert (status, body["error"]["code"]) == (503, "model_load_timeout")
    assert int(headers["retry-after"]) > 0


KEYLESS_CLIENTS_ASK = ("/v1/models", "/v1/models/tiny", "/api/version", "/api/tags")


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    "given",
    [
        {"Authorization": f"bearer {KEY}"},
        {"Authorization": f"Bearer   {KEY}  "},
        {"Authorization": KEY},
        {"x-api-key": KEY},
        {"api-key": KEY},
        basic("anyone", KEY),
        # Some clients send two, one of them without a key: the first that opens counts.
        {"Authorization": "Bearer undefined", "api-key": KEY},
        {"Authorization": "Bearer ", "x-api-key": KEY},
        {"Authorization": f"Bearer {KEY}", "x-api-key": "another"},
    ],
)
async def test_b35_a_key_in_every_spelling(hub: ScriptedHub, given: dict[str, str]) -> None:
    async with aiohttp.ClientSession(headers=given) as session:
        for path in KEYLESS_CLIENTS_ASK:
            async with session.get(hub.url + path) as reply:
                assert reply.status == 200, path


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer undefined"},
        {"Authorization": f"Digest {KEY}"},
        {"x-api-key": KEY[:-1]},
        basic(KEY, "another"),
        basic("", ""),
    ],
)
async def test_b35_what_is_no_key_is_a_401_that_names_nothing(
    hub: ScriptedHub, given: dict[str, str]
) -> None:
    async with aiohttp.ClientSession(headers=given) as session:
        for path in KEYLESS_CLIENTS_ASK:
            async with session.get(hub.url + path) as reply:
                assert reply.status == 401, path
                assert reply.headers["WWW-Authenticate"].startswith("Bearer")
                text = await reply.text()
                assert "tiny" not in text
                assert isinstance(json.loads(text)["error"], str) is path.startswith("/api/")


async def test_b37_a_second_request_waits_and_the_first_ends_by_itself(empty: ScriptedHub) -> None:
    hub = empty
    await hub.add("one", slots=1)
    await hub.warm("one")
    hub.heartbeat_s = 0.02
    gate = asyncio.Event()
    hub.starter.reply = lambda _: Script([piece("a"), gate, piece("b"), piece(None, "length"), usage(1, 2)])
    first = asyncio.create_task(hub.chat(stream=True))
    await hub.until(lambda: hub.starter.open == 1)
    second = asyncio.create_task(hub.chat(stream=True))
    # Longer than a warm model's first event is waited for: the second has its headers and its comments.
    await asyncio.sleep(1.0)
    assert hub.starter.engine("one").most_open == 1
    assert not first.done()
    gate.set()
    for task in (first, second):
        status, _, text = await task
        assert (status, texts(text), frames(text)[-1]) == (200, "ab", "[DONE]")
        assert frames(text)[-2]["choices"][0]["finish_reason"] == "length"
    assert ": keep-alive\n\n" in (await second)[2]
    assert hub.starter.engine("one").most_open == 1
