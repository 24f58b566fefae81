"""A request of the Responses API as the chat that it means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.responses.fields import Envelope
from relaydesk.core.gateway.responses.request import parse_responses
from tests.support.mutate import mutated

SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
# What an agent sends: every field that is neither refused nor empty.
AGENT: dict[str, Any] = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "h"}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]},
    ],
    "tools": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": False}],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "low", "summary": "auto"},
    "store": True,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "text": {"verbosity": "medium"},
    "max_output_tokens": 100,
    "temperature": 0.5,
    "top_p": 0.9,
    "top_logprobs": 2,
    "truncation": "auto",
    "metadata": {"a": "b"},
    "client_metadata": {"x": 1},
    "user": "u",
    "stop": ["x"],
}
FORMAT = {"type": "json_schema", "name": "n", "schema": SCHEMA}
PLAIN = {name: value for name, value in AGENT.items() if "tool" not in name} | {"text": {"format": FORMAT}}
FIELDS = set(Envelope.__struct_fields__)


def parse(**fields: Any) -> Any:
    return parse_responses(json.dumps({"input": "Hi", **fields}).encode())


def test_an_agents_request() -> None:
    request = parse(**AGENT)
    chat = request.chat
    assert (chat.model, chat.stream, chat.limit, chat.n) == ("m", True, 100, 1)
    assert (chat.temperature, chat.top_p, chat.stop, chat.parallel_tool_calls) == (0.5, 0.9, ("x",), False)
    assert (chat.logprobs, chat.top_logprobs) == (True, 2)
    assert json.loads(chat.template_options) == {"reasoning_effort": "low"}
    assert json.loads(chat.tools)[0]["function"]["name"] == "f"
    assert [m["role"] for m in json.loads(chat.messages)] == ["system", "user", "assistant", "tool", "user"]
    assert chat.image_at == "input[4].content[0]"
    assert "Go" not in repr(request)


def test_a_request_for_json() -> None:
    request = parse(**PLAIN)
    found = json.loads(request.chat.response_format)["json_schema"]
    assert (found["name"], found["schema"]["properties"]) == ("n", SCHEMA["properties"])
    assert json.loads(b"{" + request.echo + b"}")["text"] == {"format": FORMAT}


def test_what_is_told_back() -> None:
    echo = json.loads(b"{" + parse(**AGENT).echo + b"}")
    assert echo == {
        "background": False,
        "instructions": None,
        "max_output_tokens": 100,
        "metadata": {"a": "b"},
        "parallel_tool_calls": False,
        "previous_response_id": None,
        "reasoning": {"effort": "low", "summary": None},
        "store": False,
        "temperature": 0.5,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": AGENT["tools"],
        "top_logprobs": 2,
        "top_p": 0.9,
        "truncation": "disabled",
    }
    plain = json.loads(b"{" + parse().echo + b"}")
    assert (plain["tools"], plain["tool_choice"], plain["parallel_tool_calls"]) == ([], "auto", True)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"max_output_tokens": 0}, "invalid_request", "max_output_tokens"),
        ({"max_output_tokens": "many"}, "invalid_request", "max_output_tokens"),
        ({"temperature": 3}, "invalid_request", "temperature"),
        ({"top_logprobs": 21}, "invalid_request", "top_logprobs"),
        ({"reasoning": {"effort": "huge"}}, "invalid_request", "reasoning.effort"),
        ({"reasoning": {"effort": 3}}, "invalid_request", "reasoning.effort"),
        ({"input": []}, "invalid_request", "input"),
        ({"model": 7}, "invalid_request", "model"),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]},
            "invalid_request",
            "input[0].arguments",
        ),
        (
            {
                "input": [
                    {"role": "user", "content": [{"type": "input_image", "image_url": "http://x/y.png"}]}
                ]
            },
            "unsupported",
            "input[0].content[0].image_url",
        ),
        ({"text": {"format": {"type": "json_schema"}}}, "invalid_request", "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "schema": 3}}}, "invalid_request", "text.format.schema"),
        ({"text": {"format": {"type": "xml"}}}, "invalid_request", "text.format.type"),
        (
            {"tools": [{"type": "function", "name": "f", "parameters": []}]},
            "invalid_request",
            "tools[0].parameters",
        ),
        ({"tools": [{"type": "function", "name": ""}]}, "invalid_request", "tools[0].name"),
        ({**AGENT, "text": {"format": FORMAT}}, "unsupported", "text.format"),
        ({"tool_choice": "always"}, "unsupported", "tool_choice"),
        ({"stop": 3}, "invalid_request", "stop"),
    ],
)
def test_an_error_names_the_clients_own_field(fields: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        parse(**fields)
    fault = caught.value.fault
    assert (fault.code, fault.param) == (code, param)
    assert param in fault.message
    assert "messages" not in fault.message


@pytest.mark.parametrize("body", [b"", b"  ", b"[]", b"{", b'{"input":"\xff"}', b'{"input":' + b"[" * 99_999])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        parse_responses(body)
    assert caught.value.fault.code in ("invalid_json", "invalid_request")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from([AGENT, PLAIN]).flatmap(mutated))
def test_whatever_comes_is_a_chat_or_a_fault_in_the_clients_words(body: dict[str, Any]) -> None:
    try:
        request = parse_responses(json.dumps(body).encode())
    except PeerError as error:
        param = error.fault.param
        assert param is None or param.split(".")[0].split("[")[0] in FIELDS, param
    else:
        assert json.loads(request.chat.messages)
        assert json.loads(b"{" + request.echo + b"}")["store"] is False


@given(st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(PeerError):
        parse_responses(noise)
