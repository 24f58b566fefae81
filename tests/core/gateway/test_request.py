"""Checking a chat request: what is taken, what is refused, and that nothing else can happen."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.chat import ChatWork
from relaydesk.core.gateway.request import ChatRequest, check_capabilities, parse_chat
from relaydesk.core.gateway.work import Capabilities

USER = {"role": "user", "content": "hi"}


def parse(**fields: Any) -> ChatRequest:
    return parse_chat(json.dumps({"messages": [USER], **fields}).encode())


def refused(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        parse(**fields)
    return caught.value.fault.code, caught.value.fault.param


def test_everything_absent_is_a_plain_request() -> None:
    request = parse()
    assert (request.model, request.stream, request.n, request.limit, request.stop) == (
        None,
        False,
        1,
        None,
        (),
    )
    assert not request.include_usage and request.cache_prompt


def test_null_is_absent_and_unknown_fields_are_ignored() -> None:
    known = [
        "model",
        "tools",
        "stop",
        "seed",
        "response_format",
        "max_tokens",
        "stream_options",
        "stream",
        "n",
        "temperature",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "tool_choice",
        "user",
        "functions",
        "function_call",
        "audio",
        "modalities",
        "reasoning_effort",
        "cache_prompt",
        "chat_template_kwargs",
        "parallel_tool_calls",
        "max_completion_tokens",
        "web_search_options",
        "system",
        "verbosity",
    ]
    assert parse(**dict.fromkeys(known), foo=1, bar={"deep": [1]}) == parse()


def test_both_spellings_of_the_limit_and_the_smaller_of_two() -> None:
    assert parse(max_tokens=4).limit == parse(max_completion_tokens=4).limit == 4
    assert parse(max_tokens=4, max_completion_tokens=9).limit == 4


@pytest.mark.parametrize(
    ("stop", "texts"),
    [("a", ("a",)), (["a", "b"], ("a", "b")), ([], ()), (None, ()), ("", ()), (["", "b"], ("b",))],
)
def test_stop_in_every_spelling(stop: object, texts: tuple[str, ...]) -> None:
    assert parse(stop=stop).stop == texts


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", "hot"),
        ("temperature", 2.1),
        ("temperature", -0.1),
        ("n", 0),
        ("n", 17),
        ("n", True),
        ("max_tokens", 0),
        ("max_tokens", "4"),
        ("max_completion_tokens", 1.5),
        ("top_p", 1.1),
        ("min_p", -1),
        ("presence_penalty", 3),
        ("frequency_penalty", -3),
        ("repeat_penalty", 0),
        ("seed", 2**70),
        ("top_logprobs", 21),
        ("top_logprobs", 2),  # without logprobs
        ("stream", "yes"),
        ("model", 3),
        ("model", "m" * 300),
        ("stop", ["x"] * 17),
        ("stop", "x" * 9000),
        ("stop", {}),
        ("user", 3),
        ("reasoning_effort", "huge"),
        ("logit_bias", []),
        ("logit_bias", {"word": 1}),
        ("logit_bias", {"5": 101}),
        ("messages", []),
        ("messages", {}),
        ("messages", None),
        ("tools", {}),
        ("response_format", "json"),
        ("cache_prompt", 1),
        ("chat_template_kwargs", {"bos_token": "x"}),
    ],
)
def test_a_wrong_value_is_a_400_that_names_its_field(field: str, value: object) -> None:
    assert refused(**{field: value}) == ("invalid_request", field)


def test_fields_that_change_no_answer_are_passed_over() -> None:
    given = {
        "service_tier": "flex",
        "store": True,
        "metadata": {"a": "b"},
        "prediction": {"type": "content", "content": "x"},
        "prompt_cache_key": "k",
        "safety_identifier": "me",
        "user": "me",
        "verbosity": "medium",
        "stream_options": {"include_obfuscation": False},
    }
    assert parse(**given) == parse()


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
JSON = {"type": "json_object"}


def test_a_format_beside_tools_is_refused_unless_nothing_or_only_a_call_may_come() -> None:
    assert refused(tools=[TOOL], response_format=JSON) == ("unsupported", "response_format")
    assert parse(tools=[TOOL], response_format=JSON, tool_choice="none").response_format
    assert parse(tools=[TOOL], response_format=JSON, tool_choice="required").forced == ("f",)
    assert refused(tools=[TOOL], response_format={"type": "x"}, tool_choice="required") == (
        "invalid_request",
        "response_format.type",
    )


def test_an_answer_that_is_begun_cannot_be_bound() -> None:
    begun = [USER, {"role": "assistant", "content": "Well"}]
    assert parse(messages=begun)
    for more in ({"response_format": JSON}, {"tools": [TOOL], "tool_choice": "required"}):
        assert refused(messages=begun, **more) == ("unsupported", "messages[1]")


def test_the_sentence_is_for_people() -> None:
    with pytest.raises(PeerError, match=r"^temperature must be a number, not a string$"):
        parse(temperature="hot")
    with pytest.raises(PeerError, match=r"^n is 0, allowed is 1 to 16$"):
        parse(n=0)


def test_a_nested_field_is_named_in_full() -> None:
    assert refused(stream_options={"include_usage": 3}) == ("invalid_request", "stream_options.include_usage")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("functions", [{"name": "f"}]),
        ("function_call", "auto"),
        ("audio", {"voice": "x"}),
        ("modalities", ["text", "audio"]),
        ("web_search_options", {}),
        ("verbosity", "low"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_ignored(field: str, value: object) -> None:
    assert refused(**{field: value}) == ("unsupported", field)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b" \n", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"a":1}x', "invalid_json"),
        (b"[]", "invalid_request"),
        (b"null", "invalid_request"),
        (b'{"messages":[{"role":"user","content":"\xff"}]}', "invalid_json"),
        (b'{"messages":[{"role":"user","content":"\\ud800"}]}', "invalid_json"),
        (b"[" * 100_000, "invalid_request"),
        (b'{"x":' + b"[" * 100_000, "invalid_json"),
        (b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_json"),
        (b'{"seed":' + b"9" * 5000 + b',"messages":[]}', "invalid_request"),
        (b'{"temperature":1e400}', "invalid_request"),
    ],
)
def test_hostile_bodies(body: bytes, code: str) -> None:
    with pytest.raises(PeerError) as caught:
        parse_chat(body)
    assert caught.value.fault.code == code


def test_reasoning_reaches_the_template_by_two_known_names_only() -> None:
    assert parse(reasoning_effort="low").template_options == b'{"reasoning_effort":"low"}'
    assert parse(reasoning_effort="none").template_options == b'{"enable_thinking":false}'
    assert (
        parse(chat_template_kwargs={"enable_thinking": True}).template_options == b'{"enable_thinking":true}'
    )


def test_capabilities_decide_about_tools_and_images() -> None:
    tools = parse(tools=[{"type": "function", "function": {"name": "f"}}])
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    image = parse(messages=[USER, {"role": "user", "content": [{"type": "text", "text": "?"}, picture]}])
    check_capabilities(tools, Capabilities(tools=True))
    check_capabilities(image, Capabilities(images=True))
    check_capabilities(parse(), Capabilities())
    for request, param in ((tools, "tools"), (image, "messages[1].content[1]")):
        with pytest.raises(PeerError) as caught:
            check_capabilities(request, Capabilities())
        assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", param)


def test_the_prompt_is_not_in_the_repr() -> None:
    assert "secret" not in repr(parse(messages=[{"role": "user", "content": "secret"}]))


KEYS = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "n",
    "stop",
    "seed",
    "temperature",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "response_format",
    "tools",
    "tool_choice",
    "user",
    "modalities",
    "chat_template_kwargs",
    "role",
    "content",
    "type",
    "text",
    "function",
    "name",
    "arguments",
    "tool_calls",
    "schema",
    "json_schema",
    "image_url",
    "url",
    "system",
    "parameters",
    "input_schema",
    "properties",
    "items",
    "anyOf",
    "$ref",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "allowed_tools",
]
JSONISH = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["user", "system", "tool", "text", "image_url", "function", "json_schema", "auto", "\ud800"]
    )
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


def only_peer_errors(body: bytes) -> None:
    """A request that a model of any kind can be asked, or a 400 that names the field."""
    fault = None
    try:
        request = parse_chat(body)
        json.loads(request.messages)
        for capabilities in (Capabilities(tools=True, images=True), Capabilities()):
            work = ChatWork(request).fitted(capabilities)
            for extensions in (True, False):
                sent = work.body(0, alias="m", slot=0, cache_prompt=True, extensions=extensions)
                assert json.loads(sent)["messages"]
            work.reader(0, "call")
    except PeerError as error:
        fault = error.fault
    if fault is not None:
        assert fault.rule.status == 400
        assert fault.param or fault.code == "invalid_json" or fault.message.startswith("the request body")


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), JSONISH, max_size=6))
def test_any_object_gives_a_request_or_a_400(value: dict[str, Any]) -> None:
    only_peer_errors(json.dumps(value).encode())


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(KEYS), JSONISH)
def test_any_value_in_one_field_gives_a_request_or_a_400(key: str, value: object) -> None:
    only_peer_errors(json.dumps({"messages": [USER], key: value}).encode())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | JSONISH.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_give_a_request_or_a_400(body: bytes) -> None:
    only_peer_errors(body)


RICH = {
    "model": "m",
    "system": [{"type": "text", "text": "a"}],
    "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "b", "cache_control": {}}]},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "user", "content": "x"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "f",
                "description": "d",
                "strict": True,
                "parameters": {
                    "type": "object",
                    "properties": {"a": {"type": "string", "pattern": "^a$"}, "b": {"$ref": "#/$defs/n"}},
                    "required": ["a"],
                    "additionalProperties": False,
                    "$defs": {"n": {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": [None]}]}},
                },
            },
        },
        {"type": "custom", "name": "g", "input_schema": {"type": "object"}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"items": {"const": 1}}},
    },
    "stop": ["x"],
    "logit_bias": {"5": 1},
    "stream_options": {"include_usage": True},
    "chat_template_kwargs": {"enable_thinking": True},
    "modalities": ["text"],
}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every spot in a value, as what holds it and the key there."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [spot for key in keys for spot in places(value[key])]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_value_anywhere_in_a_rich_request_gives_a_request_or_a_400(data: st.DataObject) -> None:
    request = copy.deepcopy(RICH)
    if data.draw(st.booleans()):
        request["tool_choice"] = data.draw(st.sampled_from(["required", "none", None]))
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = data.draw(st.sampled_from(places(request)))
        holder[key] = copy.deepcopy(data.draw(JSONISH))
    only_peer_errors(json.dumps(request).encode())


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_request_gives_a_request_or_a_400(data: st.DataObject) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    whole = bytearray(
        json.dumps(
            {
                "messages": [
                    USER,
                    {"role": "assistant", "tool_calls": [call]},
                    {"role": "tool", "content": "ü"},
                ],
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
                "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
            },
            ensure_ascii=False,
        ).encode()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    only_peer_errors(bytes(whole))
