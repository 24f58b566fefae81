"""A request of the Messages API as the chat that it means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.anthropic.fields import Envelope
from relaydesk.core.gateway.anthropic.request import parse_count, parse_messages
from relaydesk.core.gateway.request import ChatRequest
from tests.support.mutate import mutated

SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
# What an agent sends: every field that is neither refused nor empty.
AGENT: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "h", "signature": ""},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "42"}]},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ],
        },
    ],
    "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 50},
    "output_config": {"effort": "low"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "stop_sequences": ["x"],
    "temperature": 1,
    "top_p": 0.9,
    "top_k": 40,
    "stream": True,
    "metadata": {"user_id": "u"},
}
FORMAT = {"type": "json_schema", "schema": SCHEMA}
PLAIN = {name: value for name, value in AGENT.items() if not name.startswith("tool")} | {
    "output_config": {"effort": "low", "format": FORMAT}
}
FIELDS = set(Envelope.__struct_fields__)
HI = [{"role": "user", "content": "Hi"}]


def parse(**fields: Any) -> Any:
    return parse_messages(json.dumps({"max_tokens": 5, "messages": HI, **fields}).encode())


def bound_to(chat: ChatRequest) -> Any:
    """The properties of the object that an answer has to be."""
    return json.loads(chat.response_format)["json_schema"]["schema"]["properties"]


def test_an_agents_request() -> None:
    request = parse(**AGENT)
    chat = request.chat
    assert (chat.model, chat.stream, chat.limit, chat.n) == ("m", True, 100, 1)
    assert (chat.temperature, chat.top_p, chat.top_k, chat.stop) == (1, 0.9, 40, ("x",))
    assert chat.parallel_tool_calls is False
    assert json.loads(chat.template_options) == {"reasoning_effort": "low", "enable_thinking": True}
    assert json.loads(chat.tools)[0]["function"]["parameters"] == SCHEMA
    assert [m["role"] for m in json.loads(chat.messages)] == ["system", "user", "assistant", "tool", "user"]
    assert chat.image_at == "messages[2].content[1]"
    assert request.thoughts
    assert "Go" not in repr(request)


def test_a_request_for_json() -> None:
    for asked in (PLAIN, {"output_format": FORMAT}):
        assert bound_to(parse(**asked).chat) == SCHEMA["properties"]


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"max_tokens": None}, "invalid_request", "max_tokens"),
        ({"max_tokens": 0}, "invalid_request", "max_tokens"),
        ({"max_tokens": "many"}, "invalid_request", "max_tokens"),
        ({"messages": []}, "invalid_request", "messages"),
        ({"stop_sequences": [1]}, "invalid_request", "stop_sequences[0]"),
        ({"stop_sequences": ["x"] * 17}, "invalid_request", "stop_sequences"),
        ({"output_config": {"effort": "huge"}}, "invalid_request", "output_config.effort"),
        ({"output_format": {"type": "json_schema", "schema": 3}}, "invalid_request", "output_format.schema"),
        ({**AGENT, "output_format": FORMAT}, "unsupported", "output_format"),
        ({"tools": [{"name": "f", "input_schema": []}]}, "invalid_request", "tools[0].input_schema"),
        ({"tools": [{"name": "", "input_schema": {}}]}, "invalid_request", "tools[0].name"),
        ({"top_p": 7}, "invalid_request", "top_p"),
        ({"stream": "yes"}, "invalid_request", "stream"),
    ],
)
def test_an_error_names_the_clients_own_field(fields: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        parse(**fields)
    fault = caught.value.fault
    assert (fault.code, fault.param) == (code, param)
    assert param in fault.message


@pytest.mark.parametrize(
    "body", [b"", b"  ", b"[]", b"{", b'{"messages":"\xff"}', b'{"system":' + b"[" * 99_999]
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        parse_messages(body)
    assert caught.value.fault.code in ("invalid_json", "invalid_request")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from([AGENT, PLAIN]).flatmap(mutated))
def test_whatever_comes_is_a_chat_or_a_fault_in_the_clients_words(body: dict[str, Any]) -> None:
    try:
        request = parse_messages(json.dumps(body).encode())
    except PeerError as error:
        param = error.fault.param
        assert param is None or param.split(".")[0].split("[")[0] in FIELDS, param
    else:
        assert json.loads(request.chat.messages)


def test_a_count_needs_no_limit() -> None:
    assert parse_count(json.dumps({"messages": HI}).encode()).limit is None
    with pytest.raises(PeerError):
        parse_count(b"")


@given(st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(PeerError):
        parse_messages(noise)
