"""Which chunks end an answer: by their place in JSON, whatever else they say. Never raises, linear."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.terminal import MESSAGE_LIMIT, Api, terminal
from relaydesk.core.text import SafeText
from tests.support.mutants import mutants
from tests.support.mutate import JSON, mutated

STOP = b'{"choices":[{"finish_reason":"stop"}]}'


def ends(chunk: bytes, api: Api = "chat") -> bool:
    found = terminal(chunk, api)
    assert not found.error and found.message == ""
    return found.terminal


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_chat_ends_by_its_reason(reason: str) -> None:
    chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": None}, {"finish_reason": reason}]}
    assert ends(json.dumps(chunk).encode()) and ends(json.dumps(chunk, indent=3).encode())
    assert ends(rb'{"choices":[{"finish_\u0072eason":"\u0073top"}]}')


@pytest.mark.parametrize("kind", ["completed", "incomplete", "failed"])
def test_a_response_ends_by_its_type(kind: str) -> None:
    assert ends(json.dumps({"response": {"a": 1}, "type": f"response.{kind}"}).encode(), "responses")
    assert ends(b'{"x":1,"type":"response.%s","response":{"id":' % kind.encode(), "responses")


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": [{"finish_reason": "tool_calls"}]},
        {"choices": [{"finish_reason": "content_filter"}]},
        {"choices": [{"finish_reason": ["stop"]}]},
        {"choices": [{"delta": {"finish_reason": "stop"}}]},
        {"choices": [["finish_reason", "stop"], "stop", 3, None]},
        {"choices": {"finish_reason": "stop"}},
        {"finish_reason": "stop"},
        {"choices": [{"delta": {"content": '"finish_reason":"stop"'}}]},
        {"choices": [{"delta": {"content": "response.completed"}}], "error": {"message": "x"}},
        {"type": "response.output_text.delta", "delta": '"type":"response.completed"'},
        {"type": ["response.completed"]},
        {"response": {"type": "response.completed"}},
        {"error": None},
        {"x": {"error": {"message": "x"}}},
        [{"choices": [{"finish_reason": "stop"}]}],
        "response.completed",
        None,
        7,
    ],
)
def test_what_only_looks_like_an_end(chunk: object) -> None:
    for api in ("chat", "responses"):
        assert not ends(json.dumps(chunk).encode(), api)


def test_the_two_apis_end_differently() -> None:
    assert not ends(STOP, "responses")
    assert not ends(b'{"type":"response.completed"}', "chat")


@pytest.mark.parametrize(
    "chunk", [b"", b"[DONE]", b"\xff\xfe", b'{"choices":[{"finish_reason" : "stop"', b'{"a":' * 9000, b"stop"]
)
def test_what_is_no_json(chunk: bytes) -> None:
    assert not ends(chunk) and not ends(chunk, "responses")


def test_a_cut_chunk_ends_only_where_the_member_stands_whole() -> None:
    assert ends(STOP[:-3]) and not ends(STOP[:-5])
    # A text that quotes an end has its quotes escaped.
    quoting = json.dumps({"choices": [{"delta": {"content": STOP.decode()}}]}).encode()
    assert not ends(quoting[:-1])
    quoting = json.dumps({"delta": '{"type":"response.completed"}'}).encode()
    assert not ends(quoting[:-1], "responses")


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (b'{"error":{"message":"boom"}}', "boom"),
        (b'{"error":{"message":"boom"},"choices":null,"message":"other"}', "boom"),
        (b'{"error":{"message":""},"type":"error","message":"other"}', "other"),
        (b'{"error":"boom"}', "boom"),
        (b'{"error":[1, {"a": 2}]}', '[1,{"a":2}]'),
        (b'{"error":{"message": 3, "code": 1.50}}', '{"message":3,"code":1.50}'),
        (b'{"error":false}', "false"),
        (b'{"error":{"code":"x"},"message":"not it"}', '{"code":"x"}'),
        (b'{"type":"error"}', "error"),
        (b'{"type":"error","message":"m","choices":[]}', "m"),
        (b'{"type":"error","error":{"message":"deep"}}', "deep"),
        (b'{"error":{"message":"a\\u001b[2J\\u202eb"}}', "a[2Jb"),
        (b'{"error":{"message":"a\\ud800b"}}', "ab"),
        (b'{"error":{"message":"\\ud800"}}', "error"),
        (b'{"error":{"message":"%s"}}' % (b"x" * 9000), "x" * (MESSAGE_LIMIT - 1) + "…"),
    ],
)
def test_errors(chunk: bytes, message: str) -> None:
    for api in ("chat", "responses"):
        found = terminal(chunk, api)
        assert found.terminal and found.error and isinstance(found.message, SafeText)
        assert found.message == message


@settings(max_examples=200, deadline=None)
@given(
    mutated(
        {"type": "error", "choices": [{"finish_reason": "stop"}], "error": {"message": "m"}, "message": "n"}
    ),
    st.sampled_from(["chat", "responses"]),
)
def test_any_json_is_judged_by_its_place(value: dict[str, Any], api: Api) -> None:
    found = terminal(json.dumps(value).encode(), api)
    error = value.get("type") == "error" or (value.get("error") is not None and value.get("choices") is None)
    choices = value.get("choices")
    stops = api == "chat" and isinstance(choices, list)
    stops = stops and any(
        isinstance(c, dict) and c.get("finish_reason") in ("stop", "length") for c in choices
    )
    assert (found.terminal, found.error) == (error or stops, error)


@given(JSON)
def test_other_json_is_content(value: object) -> None:
    for api in ("chat", "responses"):
        assert not terminal(json.dumps([value]).encode(), api).terminal


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    sample = b'{"type":"error","choices":[{"finish_reason":"stop"},3],"error":{"message":"m"},"message":"n"}'
    for number, data in enumerate(mutants(sample, count)):
        found = terminal(data, "chat" if number % 2 else "responses")
        assert found.terminal or not found.error
        assert len(found.message) <= MESSAGE_LIMIT


LARGE = [
    b'{"choices":[' + b"{}," * 300_000 + b"{}]}",
    b'{"error":' + b"[" * 500_000,
    b'"finish_reason":"' * 60_000,
    b'{"error":{"message":"' + b"\\u0041" * 150_000 + b'"}}',
    b'{"error":{"message":"' + b"\\ud800" * 150_000 + b'"}}',
    b"\\" * 1_000_000,
]


@pytest.mark.parametrize("chunk", LARGE, ids=range(6))
def test_a_megabyte_of_anything_is_judged(chunk: bytes) -> None:
    for api in ("chat", "responses"):
        assert len(terminal(chunk, api).message) <= MESSAGE_LIMIT


def test_half_a_character_hides_no_end() -> None:
    chunk = rb'{"choices":[{"delta":{"content":"\ud83d"}, "finish_reason" : "stop"}]}'
    assert ends(chunk) and not ends(chunk.replace(b"stop", b"tool_calls"))
