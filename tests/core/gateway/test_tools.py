"""Tools as clients write them, and what tool_choice leaves of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.tools import MAX_BYTES, MAX_TOOLS, Offer, offered, read_tools, tool_offer

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
F, G = ({"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in "fg")


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def fault(call: object, *args: object) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        call(*args)  # type: ignore[operator]
    return caught.value.fault.code, caught.value.fault.param


def rebuilt(*tools: object) -> Any:
    return json.loads(offered(read_tools(raw(list(tools)))) or b"null")


def offer(choice: object) -> tuple[str, bool]:
    found = tool_offer(raw(choice), read_tools(raw([F, G])))
    return "".join(tool.name for tool in found.tools), found.forced


def test_a_tool_is_rebuilt_from_known_fields() -> None:
    function = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": False, "x": 1}
    assert rebuilt({"type": "function", "function": function, "id_slot": 3, "cache_control": {}}) == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
    ]


def test_no_tools() -> None:
    assert read_tools(raw(None)) == read_tools(raw([])) == read_tools(Raw()) == ()
    assert offered(()) == b""


@pytest.mark.parametrize(
    ("tool", "where"),
    [
        (
            {"name": "f", "description": "d", "input_schema": SCHEMA, "cache_control": {"type": "x"}},
            "input_schema",
        ),
        ({"type": "custom", "name": "f", "description": "d", "input_schema": SCHEMA}, "input_schema"),
        ({"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}, "parameters"),
        ({"name": "f", "description": "d", "parameters": SCHEMA, "function": None}, "parameters"),
    ],
)
def test_flat_tools(tool: object, where: str) -> None:
    """As some editors send them beside OpenAI's messages."""
    assert rebuilt(tool) == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
    ]
    assert read_tools(raw([tool]))[0].at == f"tools[0].{where}"


def test_a_tool_without_parameters_has_none() -> None:
    empty = {"type": "object", "properties": {}}
    for tool in ({"function": {"name": "f"}}, {"name": "f", "parameters": None}):
        assert rebuilt(tool)[0]["function"] == {"name": "f", "parameters": empty}


@pytest.mark.parametrize(
    ("tool", "code", "param"),
    [
        ({"type": "retrieval", "function": {"name": "f"}}, "unsupported", "tools[0].type"),
        ({"type": "custom", "custom": {"name": "f"}}, "unsupported", "tools[0].type"),
        ({"type": "bash_20250124", "name": "bash"}, "unsupported", "tools[0].type"),
        ({"type": "function"}, "invalid_request", "tools[0].function"),
        ({"type": "function", "function": {}}, "invalid_request", "tools[0].function.name"),
        ({"type": "function", "function": 3}, "invalid_request", "tools[0].function"),
        ({"function": {"name": ""}}, "invalid_request", "tools[0].function.name"),
        ({"name": "x" * 129}, "invalid_request", "tools[0].name"),
        ({"name": 3}, "invalid_request", "tools[0].name"),
        ({"function": {"name": "f", "parameters": []}}, "invalid_request", "tools[0].function.parameters"),
        ({"name": "f", "input_schema": 3}, "invalid_request", "tools[0].input_schema"),
        ({"name": "f", "input_schema": {"type": 3}}, "invalid_request", "tools[0].input_schema.type"),
        (7, "invalid_request", "tools[0]"),
    ],
)
def test_a_wrong_tool_is_named(tool: object, code: str, param: str) -> None:
    assert fault(rebuilt, tool) == (code, param)


def test_too_much_of_it() -> None:
    assert fault(rebuilt, *[F] * (MAX_TOOLS + 1)) == ("invalid_request", "tools")
    large = {"name": "f", "parameters": {"title": "x" * (MAX_BYTES // 4)}}
    assert fault(read_tools, raw([large] * 5)) == ("invalid_request", "tools")


def test_what_may_be_called_need_not_be_enforced() -> None:
    """Keywords that no engine keeps to are described all the same; what breaks one is left out (B19)."""
    loose = {"type": "object", "properties": {"x": {"type": "number", "minimum": 0, "not": {}}, "y": True}}
    (found,) = rebuilt({"name": "f", "parameters": loose})
    assert found["function"]["parameters"]["properties"] == {"x": loose["properties"]["x"], "y": {}}  # type: ignore[index]


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        (None, ("fg", False)),
        ("auto", ("fg", False)),
        ("none", ("", False)),
        ("required", ("fg", True)),
        ({"type": "auto"}, ("fg", False)),
        ({"type": "none"}, ("", False)),
        ({"type": "any"}, ("fg", True)),
        ({"type": "tool", "name": "g"}, ("g", True)),
        ({"type": "function", "function": {"name": "g"}}, ("g", True)),
        ({"type": "function", "name": "f"}, ("f", True)),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "g"}}],
                },
            },
            ("g", True),
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            },
            ("f", False),
        ),
    ],
)
def test_tool_choice(choice: object, found: tuple[str, bool]) -> None:
    assert offer(choice) == found


@pytest.mark.parametrize(
    ("choice", "code", "param"),
    [
        ("any", "unsupported", "tool_choice"),
        ("always", "unsupported", "tool_choice"),
        ({"type": "custom", "custom": {"name": "f"}}, "unsupported", "tool_choice"),
        ({"type": "function", "function": {"name": "h"}}, "invalid_request", "tool_choice"),
        ({"type": "function"}, "invalid_request", "tool_choice.function"),
        ({"type": "function", "function": {}}, "invalid_request", "tool_choice.function.name"),
        ({"type": "allowed_tools"}, "unsupported", "tool_choice"),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "x", "tools": []}},
            "invalid_request",
            "tool_choice.allowed_tools.mode",
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "name": "h"}]},
            },
            "invalid_request",
            "tool_choice.allowed_tools.tools",
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}},
            "invalid_request",
            "tool_choice",
        ),
        ({}, "invalid_request", "tool_choice.type"),
        (3, "invalid_request", "tool_choice"),
    ],
)
def test_a_wrong_choice_is_named(choice: object, code: str, param: str) -> None:
    assert fault(offer, choice) == (code, param)


def test_a_choice_without_tools() -> None:
    for choice in ("auto", "none", None):
        assert tool_offer(raw(choice), ()) == Offer()
    assert fault(tool_offer, raw("required"), ()) == ("invalid_request", "tool_choice")
    assert fault(tool_offer, raw({"type": "tool", "name": "f"}), ()) == ("invalid_request", "tool_choice")
