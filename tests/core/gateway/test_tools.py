"""Tools, forced calls and response formats."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.tools import MAX_SCHEMA_BYTES, rebuild_tools, response_format, tool_choice

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def fault(call: object, *args: object, **kwargs: object) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        call(*args, **kwargs)  # type: ignore[operator]
    return caught.value.fault.code, caught.value.fault.param


def test_a_tool_is_rebuilt_from_known_fields() -> None:
    function = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": False, "x": 1}
    found = json.loads(rebuild_tools(raw([{"type": "function", "function": function, "id_slot": 3}])))
    assert found == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
    ]


def test_no_tools() -> None:
    assert rebuild_tools(raw(None)) == rebuild_tools(raw([])) == rebuild_tools(Raw()) == b""


@pytest.mark.parametrize(
    ("tool", "code", "param"),
    [
        ({"type": "retrieval", "function": {"name": "f"}}, "unsupported", "tools[0].type"),
        ({"type": "function"}, "invalid_request", "tools[0].function"),
        ({"type": "function", "function": {}}, "invalid_request", "tools[0].function.name"),
        ({"function": {"name": ""}}, "invalid_request", "tools[0].function.name"),
        ({"function": {"name": "f", "parameters": []}}, "invalid_request", "tools[0].function.parameters"),
        (7, "invalid_request", "tools[0]"),
    ],
)
def test_a_wrong_tool_is_named(tool: object, code: str, param: str) -> None:
    assert fault(rebuild_tools, raw([tool])) == (code, param)


def test_tool_choice() -> None:
    assert tool_choice(raw("auto"), have_tools=False) == "auto"
    assert tool_choice(raw("none"), have_tools=True) == "none"
    assert tool_choice(raw(None), have_tools=True) == ""


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "f"}}, "any", {"type": "x"}]
)
def test_a_forced_call_is_never_ignored(choice: object) -> None:
    assert fault(tool_choice, raw(choice), have_tools=True) == ("unsupported", "tool_choice")


def test_a_forced_call_without_tools() -> None:
    assert fault(tool_choice, raw("required"), have_tools=False) == ("invalid_request", "tool_choice")


@pytest.mark.parametrize(
    "given",
    [
        {"type": "json_schema", "json_schema": {"name": "p", "strict": True, "schema": SCHEMA}},
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": None, "schema": SCHEMA},
    ],
)
def test_a_schema_ends_up_where_the_engine_looks(given: object) -> None:
    found = json.loads(response_format(raw(given)))
    assert found["type"] == "json_schema" and found["json_schema"]["schema"] == SCHEMA


def test_formats_without_a_schema() -> None:
    assert response_format(raw({"type": "text"})) == response_format(raw(None)) == b""
    assert json.loads(response_format(raw({"type": "json_object"}))) == {"type": "json_object"}
    found = json.loads(response_format(raw({"type": "json_object", "schema": SCHEMA})))
    assert found == {"type": "json_object", "schema": SCHEMA}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"type": "json_schema"}, "response_format.json_schema.schema"),
        ({"type": "json_schema", "json_schema": {"schema": "x"}}, "response_format.json_schema.schema"),
        ({"type": "json_schema", "json_schema": []}, "response_format.json_schema"),
        ({"type": "yaml"}, "response_format.type"),
        ({}, "response_format.type"),
        (
            {"type": "json_schema", "json_schema": {"schema": {"a": "x" * MAX_SCHEMA_BYTES}}},
            "response_format.json_schema.schema",
        ),
    ],
)
def test_a_wrong_format_is_named(given: object, param: str) -> None:
    assert fault(response_format, raw(given)) == ("invalid_request", param)


def test_a_schema_nested_too_deep() -> None:
    def nested(depth: int) -> Raw:
        return Raw(b'{"type":"json_schema","schema":' + b'{"not":' * depth + b"{}" + b"}" * depth + b"}")

    assert response_format(nested(63))
    assert fault(response_format, nested(64)) == ("invalid_json", "response_format.schema")
    assert response_format(
        raw({"type": "json_schema", "schema": {"enum": ['"' + "[" * 99, "\\", '\\"' + "{" * 99]}})
    )
    # Brackets inside text do not count, nor do many values side by side.
    assert response_format(raw({"type": "json_schema", "schema": {"enum": ["[" * 200, *[[]] * 100]}}))
