"""What an engine gets wrong and a client gets right: calls, formats, stop texts, characters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.scripted_engine import Script, piece, usage
from tests.support.scripted_hub import ScriptedHub, frames, texts

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}
CALL = ['{"na', 'me": "weather', '", "arguments": {"ci', 'ty": "Paris ', '\\"P\\""}', "}"]
ARGUMENTS = '{"city": "Paris \\"P\\""}'


def says(*words: str, finish: str = "stop") -> Script:
    return Script([*map(piece, words), piece(None, finish), usage(9, len(words))])


def choices(text: str) -> list[Any]:
    assert frames(text)[-1] == "[DONE]"
    return [choice for frame in frames(text)[:-1] for choice in frame["choices"]]


@pytest.mark.parametrize("kind", ["xllamacpp", "url"])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
async def test_a_forced_call_streamed_and_whole(empty: ScriptedHub, kind: str, choice: Any) -> None:
    """``tiny`` speaks no tools, and no engine keeps to ``tool_choice``."""
    hub = empty
    await hub.add("m", **({"kind": "url", "url": "http://far.example"} if kind == "url" else {}))
    hub.starter.reply = lambda _: says(*CALL)
    asked = {"tools": [WEATHER, TIME], "tool_choice": choice}
    status, _, body = await hub.chat(**asked)
    assert status == 200
    (got,) = body["choices"]
    assert got["finish_reason"] == "tool_calls"
    assert got["message"]["content"] is None and got["logprobs"] is None
    (call,) = got["message"]["tool_calls"]
    assert (call["type"], call["function"]) == ("function", {"name": "weather", "arguments": ARGUMENTS})
    sent = hub.starter.engine("m").bodies[0]
    assert not sent.keys() & {"tools", "tool_choice"}
    schema = sent["response_format"]["json_schema"]["schema"]
    assert ("anyOf" in schema) is (choice == "required")

    _, _, text = await hub.chat(**asked, stream=True)
    seen = choices(text)
    assert [each["delta"] for each in seen[:1]] == [{"role": "assistant", "content": ""}]
    deltas = [delta for each in seen for delta in each["delta"].get("tool_calls", ())]
    assert deltas[0]["function"] == {"name": "weather", "arguments": ""}
    assert all(set(delta) == {"index", "function"} and delta["index"] == 0 for delta in deltas[1:])
    assert "".join(delta["function"]["arguments"] for delta in deltas) == ARGUMENTS
    assert len(deltas) > 2
    assert [each["finish_reason"] for each in seen] == [None] * (len(seen) - 1) + ["tool_calls"]
    assert seen[-1]["delta"] == {} and texts(text) == ""
    assert hub.journal.in_flight == 0


async def test_each_choice_is_a_call_of_its_own(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: says(*CALL)
    _, _, body = await hub.chat(tools=[WEATHER], tool_choice="required", n=2)
    calls = [choice["message"]["tool_calls"][0] for choice in body["choices"]]
    assert len({call["id"] for call in calls}) == 2
    assert {call["function"]["arguments"] for call in calls} == {ARGUMENTS}


async def test_a_call_that_is_cut_ends_with_length(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: says(*CALL[:3], finish="length")
    asked = {"tools": [WEATHER], "tool_choice": "required"}
    _, _, body = await hub.chat(**asked)
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"ci'
    seen = choices((await hub.chat(**asked, stream=True))[2])
    assert seen[-1]["finish_reason"] == "length" and seen[-1]["delta"] == {}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "asked",
    [{"tools": [WEATHER], "tool_choice": "required"}, {"response_format": {"type": "json_object"}}],
    ids=["call", "format"],
)
async def test_prose_in_its_place_is_the_engines_failure(hub: ScriptedHub, asked: Any, stream: bool) -> None:
    hub.starter.reply = lambda _: says("Sure", ", here it is")
    status, _, body = await hub.chat(**asked, stream=stream)
    if stream and status == 200:
        assert [set(frame) for frame in frames(body)] == [{"error"}]
        body = frames(body)[0]
    assert body["error"]["code"] == "engine_failed"
    await hub.idle()


async def test_a_schema_that_is_not_kept_to_is_refused_by_its_keyword(hub: ScriptedHub) -> None:
    """Report B19 (d), in a format and where a call is forced; where none is, nothing is bound."""
    odd = {"type": "object", "properties": {"x": {"type": "string", "pattern": "(?<=a)b"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": odd}}
    where = {
        "response_format.json_schema.schema": {
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": odd}}
        },
        "response_format.schema": {"response_format": {"type": "json_schema", "schema": odd}},
        "tools[0].function.parameters": {"tools": [tool], "tool_choice": "required"},
    }
    for at, asked in where.items():
        status, _, body = await hub.chat(**asked)
        assert (status, body["error"]["code"]) == (400, "unsupported")
        assert body["error"]["param"] == f"{at}.properties.x.pattern"
    await hub.add("far", kind="url", url="http://far.example")
    assert (await hub.chat(model="far", tools=[tool]))[0] == 200
    (sent,) = hub.starter.engine("far").bodies
    assert sent["tools"][0]["function"]["parameters"]["properties"] == {"x": {"type": "string"}}


@pytest.mark.parametrize(
    ("words", "stop", "said"),
    [
        (["alpha be", "ta gam", "ma delta"], ["beta gamma"], "alpha "),
        (["Mars?", "\n"], "\n", "Mars?"),
        (["alpha be", "ta gam", "ble"], ["beta gamma"], "alpha beta gamble"),
        (["alpha", " beta"], None, "alpha beta"),
        (["alpha", " beta"], [], "alpha beta"),
    ],
)
async def test_b12_stop_texts_whatever_the_engine_makes_of_them(
    hub: ScriptedHub, words: list[str], stop: Any, said: str
) -> None:
    hub.starter.reply = lambda _: says(*words)
    _, _, body = await hub.chat(stop=stop)
    assert body["choices"][0]["message"]["content"] == said
    _, _, text = await hub.chat(stop=stop, stream=True)
    assert texts(text) == said
    for reason in (body["choices"][0]["finish_reason"], choices(text)[-1]["finish_reason"]):
        assert reason == "stop"
    assert choices(text)[-1]["delta"] == {}
    for path in ("/v1/completions", "/api/chat"):
        asked = {"options": {"stop": stop} if stop else {}} if path == "/api/chat" else {"stop": stop}
        prompt = (
            {"prompt": "x"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "x"}]}
        )
        async with hub.session.post(f"{hub.url}{path}", json={"stream": False, **prompt, **asked}) as reply:
            body = await reply.json()
        assert (body["message"]["content"] if path == "/api/chat" else body["choices"][0]["text"]) == said


async def test_an_engine_that_goes_on_behind_a_stop_text_is_left(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: Script([piece("aX"), *[piece("more")] * 100, 600.0])
    status, headers, body = await hub.chat(stop="X")
    assert (status, body["choices"][0]["message"]["content"]) == (200, "a")
    view = hub.journal.find(headers["x-request-id"])
    assert view is not None and view.state == "done"
    await hub.idle()


async def test_b08_characters_cut_in_two_come_whole(hub: ScriptedHub) -> None:
    def chunk(text: bytes) -> bytes:
        return b'{"choices":[{"index":0,"delta":{"content":"' + text + b'"}}]}'

    halves = [rb"a\ud83d", rb"\ude0a\u6f22", rb"\ud83d", b"b"]
    hub.starter.reply = lambda _: Script([*map(chunk, halves), piece(None, "stop"), usage(3, 4)])
    for asked in ({}, {"stop": ["zzz"]}):
        _, _, body = await hub.chat(**asked)
        assert body["choices"][0]["message"]["content"] == "a😊漢\ufffdb"
        assert body["usage"]["completion_tokens"] == 4
        _, _, text = await hub.chat(**asked, stream=True)
        assert texts(text) == "a😊漢\ufffdb"
        for each in choices(text):
            json.dumps(each, ensure_ascii=False).encode()


async def test_b02_calls_that_the_engine_ended_with_stop(hub: ScriptedHub) -> None:
    await hub.add("far", kind="url", url="http://far.example")
    call = {"index": 0, "id": "a", "function": {"name": "time", "arguments": "{}"}}
    data = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).encode()
    hub.starter.reply = lambda _: Script([data, piece(None, "stop"), usage(3, 4)])
    _, _, body = await hub.chat(model="far", tools=[TIME])
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    _, _, text = await hub.chat(model="far", tools=[TIME], stream=True)
    assert choices(text)[-1]["finish_reason"] == "tool_calls"


async def test_tools_that_may_be_called_need_a_template_that_speaks_them(hub: ScriptedHub) -> None:
    for choice in (None, "auto"):
        status, _, body = await hub.chat(tools=[TIME], tool_choice=choice)
        assert (status, body["error"]["code"], body["error"]["param"]) == (400, "unsupported", "tools")
    assert (await hub.chat(tools=[TIME], tool_choice="none"))[0] == 200


async def test_an_anthropic_shaped_body_of_an_editor(hub: ScriptedHub) -> None:
    """Cursor: a system of blocks beside the messages, flat tools, cache marks everywhere."""
    mark = {"cache_control": {"type": "ephemeral"}}
    hub.starter.reply = lambda _: says('{"name":"time","arguments":{}}')
    status, _, body = await hub.chat(
        system=[{"type": "text", "text": "Be brief.", **mark}],
        messages=[{"role": "user", "content": [{"type": "text", "text": "hi", **mark}], **mark}],
        tools=[
            {"name": "time", "description": "d", "input_schema": {"type": "object", "properties": {}}, **mark}
        ],
        tool_choice={"type": "any"},
    )
    assert (status, body["choices"][0]["finish_reason"]) == (200, "tool_calls")
    sent = hub.starter.engine("tiny").bodies[0]["messages"]
    assert [each["role"] for each in sent] == ["system", "user"]
    assert sent[0]["content"].startswith("Be brief.\n\n") and sent[1]["content"] == "hi"


async def test_a_forced_call_in_the_other_dialects(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: says(*CALL)
    schema = WEATHER["function"]["parameters"]
    asked: dict[str, Any] = {
        "/v1/responses": {
            "input": "x",
            "tools": [{"type": "function", "name": "weather", "parameters": schema}],
            "tool_choice": {"type": "function", "name": "weather"},
        },
        "/v1/messages": {
            "max_tokens": 50,
            "messages": [{"role": "user", "content": "x"}],
            "tools": [{"name": "weather", "input_schema": schema}],
            "tool_choice": {"type": "any"},
            "stop_sequences": ["P"],
        },
    }
    answers = {}
    for path, body in asked.items():
        async with hub.session.post(hub.url + path, json={"model": "tiny", **body}) as reply:
            assert reply.status == 200, await reply.text()
            answers[path] = await reply.json()
    (item,) = answers["/v1/responses"]["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "weather", ARGUMENTS)
    (block,) = answers["/v1/messages"]["content"]
    assert (block["type"], block["name"], block["input"]) == ("tool_use", "weather", json.loads(ARGUMENTS))
    assert answers["/v1/messages"]["stop_reason"] == "tool_use"


async def test_a_keyword_is_named_in_the_words_of_each_dialect(hub: ScriptedHub) -> None:
    odd = {"type": "object", "properties": {"x": {"type": "number", "minimum": 0}}}
    chat = {"messages": [{"role": "user", "content": "x"}]}
    asked: dict[str, tuple[Any, str]] = {
        "/api/chat": ({**chat, "format": odd}, "format.properties.x.minimum"),
        "/v1/responses": (
            {"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "schema": odd}}},
            "text.format.schema.properties.x.minimum",
        ),
        "/v1/messages": (
            {
                "max_tokens": 5,
                **chat,
                "tools": [{"name": "f", "input_schema": odd}],
                "tool_choice": {"type": "tool", "name": "f"},
            },
            "tools[0].input_schema.properties.x.minimum",
        ),
    }
    for path, (body, param) in asked.items():
        async with hub.session.post(hub.url + path, json={"model": "tiny", **body}) as reply:
            assert reply.status == 400
            assert param in await reply.text()
