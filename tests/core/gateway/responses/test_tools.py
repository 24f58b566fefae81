"""Flat functions as those of a chat, and the formats of text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.responses.tools import chat_format, chat_tools

SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
WEATHER = {"type": "function", "name": "weather", "description": "d", "parameters": SCHEMA, "strict": True}
TIME = {"type": "function", "name": "time"}


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def test_a_function_is_wrapped_and_told_back_flat() -> None:
    tools = chat_tools(raw([WEATHER, TIME]), Raw(), FieldNames({}))
    function = {"name": "weather", "description": "d", "parameters": SCHEMA}
    assert json.loads(tools.chat) == [
        {"type": "function", "function": function},
        {"type": "function", "function": {"name": "time"}},
    ]
    assert json.loads(tools.echo) == [WEATHER, {**TIME, "strict": None}]
    assert (tools.choice, tools.choice_echo) == (b"", b'"auto"')


@pytest.mark.parametrize("none", [Raw(), raw(None), raw([])])
def test_no_tools(none: Raw) -> None:
    tools = chat_tools(none, Raw(), FieldNames({}))
    assert (tools.chat, tools.echo) == (b"", b"[]")


@pytest.mark.parametrize(
    ("choice", "chat"),
    [
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "name": "time"}, {"type": "function", "function": {"name": "time"}}),
    ],
)
def test_a_choice_is_translated_and_told_back(choice: Any, chat: Any) -> None:
    tools = chat_tools(raw([WEATHER, TIME]), raw(choice), FieldNames({}))
    assert json.loads(tools.choice) == chat
    assert json.loads(tools.choice_echo) == choice


def test_only_allowed_tools_are_offered_and_keep_their_names() -> None:
    names = FieldNames({})
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "time"}]}
    tools = chat_tools(raw([WEATHER, TIME]), raw(choice), names)
    assert [tool["function"]["name"] for tool in json.loads(tools.chat)] == ["time"]
    assert len(json.loads(tools.echo)) == 2
    assert tools.choice == b'"required"'
    assert names("tools[0].function.parameters") == "tools[1].parameters"


@pytest.mark.parametrize(
    ("tools", "choice", "code", "param"),
    [
        ({}, None, "invalid_request", "tools"),
        ([TIME, {"type": "web_search"}], None, "unsupported", "tools[1].type"),
        ([{"type": "custom", "name": "x"}], None, "unsupported", "tools[0].type"),
        ([{"name": "x"}], None, "invalid_request", "tools[0].type"),
        ([{"type": "function", "function": {"name": "x"}}], None, "invalid_request", "tools[0].name"),
        ([{**TIME, "description": 3}], None, "invalid_request", "tools[0].description"),
        ([{**TIME, "strict": "yes"}], None, "invalid_request", "tools[0].strict"),
        ([TIME] * 513, None, "invalid_request", "tools"),
        ([TIME], {"type": "mcp", "server_label": "x"}, "unsupported", "tool_choice"),
        ([TIME], {"type": "function"}, "invalid_request", "tool_choice.name"),
        ([TIME], {"type": "allowed_tools", "mode": "x"}, "invalid_request", "tool_choice.mode"),
        (
            [TIME],
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "gone"}]},
            "invalid_request",
            "tool_choice.tools",
        ),
        (
            [TIME],
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]},
            "unsupported",
            "tool_choice.tools[0].type",
        ),
    ],
)
def test_what_cannot_be_offered_is_refused_by_name(tools: Any, choice: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        chat_tools(raw(tools), raw(choice), FieldNames({}))
    assert (caught.value.fault.code, caught.value.fault.param) == (code, param)


@pytest.mark.parametrize(
    ("text", "chat", "told"),
    [
        (None, None, {"type": "text"}),
        ({}, None, {"type": "text"}),
        ({"verbosity": "medium"}, None, {"type": "text"}),
        ({"format": {"type": "json_object"}}, {"type": "json_object"}, {"type": "json_object"}),
        (
            {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
            {"type": "json_schema", "name": "n", "strict": True, "schema": SCHEMA},
        ),
    ],
)
def test_formats(text: Any, chat: Any, told: Any) -> None:
    found, echo = chat_format(raw(text), FieldNames({}))
    assert (json.loads(found) if found else None) == chat
    assert json.loads(echo) == told


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ({"verbosity": "low"}, "text.verbosity"),
        ({"format": "json"}, "text.format"),
        ({"format": {}}, "text.format.type"),
        (3, "text"),
    ],
)
def test_formats_that_cannot_be(text: Any, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        chat_format(raw(text), FieldNames({}))
    assert caught.value.fault.param == param
