"""Tools and the choice among them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.anthropic.tools import chat_choice, chat_tools
from relaydesk.core.gateway.field_names import FieldNames

SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
TOOL = {"name": "weather", "description": "d", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def test_a_tool_is_a_function() -> None:
    names = FieldNames({})
    plain = {"type": "custom", "name": "time", "input_schema": {}}
    assert json.loads(chat_tools(raw([TOOL, plain]), names)) == [
        {"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}},
        {"type": "function", "function": {"name": "time", "parameters": {}}},
    ]
    assert names("tools[1].function.parameters") == "tools[1].input_schema"
    assert names("tools[1].function.name") == "tools[1].name"


@pytest.mark.parametrize("none", [Raw(), raw(None)])
def test_no_tools(none: Raw) -> None:
    assert chat_tools(none, FieldNames({})) == b""
    assert chat_choice(none) == (b"", b"")


@pytest.mark.parametrize(
    ("tools", "code", "param"),
    [
        ({}, "invalid_request", "tools"),
        ([TOOL, {"type": "web_search_20250305", "name": "web_search"}], "unsupported", "tools[1].type"),
        ([{"name": "f"}], "invalid_request", "tools[0].input_schema"),
        ([{"input_schema": {}}], "invalid_request", "tools[0].name"),
        ([{**TOOL, "description": 1}], "invalid_request", "tools[0].description"),
        ([TOOL] * 513, "invalid_request", "tools"),
    ],
)
def test_what_cannot_be_offered_is_refused_by_name(tools: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        chat_tools(raw(tools), FieldNames({}))
    assert (caught.value.fault.code, caught.value.fault.param) == (code, param)


@pytest.mark.parametrize(
    ("choice", "chat", "parallel"),
    [
        ({"type": "auto"}, "auto", b""),
        ({"type": "any", "disable_parallel_tool_use": True}, "required", b"false"),
        ({"type": "none", "disable_parallel_tool_use": False}, "none", b""),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}, b""),
    ],
)
def test_a_choice(choice: Any, chat: Any, parallel: bytes) -> None:
    found, calls = chat_choice(raw(choice))
    assert (json.loads(found), calls) == (chat, parallel)


@pytest.mark.parametrize(
    ("choice", "param"),
    [("auto", "tool_choice"), ({"type": "all"}, "tool_choice.type"), ({"type": "tool"}, "tool_choice.name")],
)
def test_choices_that_cannot_be(choice: Any, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        chat_choice(raw(choice))
    assert caught.value.fault.param == param
