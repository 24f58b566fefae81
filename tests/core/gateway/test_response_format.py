"""What an answer is bound to."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.response_format import response_format
from relaydesk.core.gateway.schema.shapes import MAX_SCHEMA_BYTES

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def fault(given: object) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        response_format(given if isinstance(given, Raw) else raw(given))
    return caught.value.fault.code, caught.value.fault.param


@pytest.mark.parametrize(
    "given",
    [
        {"type": "json_schema", "json_schema": {"name": "p", "strict": True, "schema": SCHEMA}},
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": None, "schema": SCHEMA},
        {"type": "json_object", "schema": SCHEMA},
    ],
)
def test_a_schema_ends_up_where_the_engine_looks(given: object) -> None:
    found = json.loads(response_format(raw(given)))
    assert found["type"] == "json_schema" and found["json_schema"]["schema"] == SCHEMA


def test_formats_without_a_schema() -> None:
    assert response_format(raw({"type": "text"})) == response_format(raw(None)) == b""
    assert json.loads(response_format(raw({"type": "json_object"}))) == {"type": "json_object"}


PATTERN = {"properties": {"x": {"type": "string", "pattern": "(?=a)"}}}


@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        ({"type": "json_schema"}, "invalid_request", "response_format.json_schema.schema"),
        (
            {"type": "json_schema", "json_schema": {"schema": "x"}},
            "invalid_request",
            "response_format.json_schema.schema",
        ),
        ({"type": "json_schema", "json_schema": []}, "invalid_request", "response_format.json_schema"),
        ({"type": "yaml"}, "invalid_request", "response_format.type"),
        ({}, "invalid_request", "response_format.type"),
        (
            {"type": "json_schema", "json_schema": {"schema": {"a": "x" * MAX_SCHEMA_BYTES}}},
            "invalid_request",
            "response_format.json_schema.schema",
        ),
        (
            {"type": "json_schema", "json_schema": {"schema": PATTERN}},
            "unsupported",
            "response_format.json_schema.schema.properties.x.pattern",
        ),
        (
            {"type": "json_schema", "schema": PATTERN},
            "unsupported",
            "response_format.schema.properties.x.pattern",
        ),
        (
            {"type": "json_object", "schema": PATTERN},
            "unsupported",
            "response_format.schema.properties.x.pattern",
        ),
    ],
)
def test_a_wrong_format_is_named(given: object, code: str, param: str) -> None:
    assert fault(given) == (code, param)


def test_a_schema_nested_too_deep() -> None:
    def nested(depth: int) -> Raw:
        return Raw(b'{"type":"json_schema","schema":' + b'{"items":' * depth + b"{}" + b"}" * depth + b"}")

    assert response_format(nested(63))
    assert fault(nested(64)) == ("invalid_json", "response_format.schema")
    # Brackets inside text do not count, nor do many values side by side.
    assert response_format(
        raw(
            {
                "type": "json_schema",
                "schema": {"enum": ['"' + "[" * 99, "\\", '\\"' + "{" * 99, "[" * 200, *[[]] * 100]},
            }
        )
    )
