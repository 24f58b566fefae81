"""Schemas of tools that need not be called: nothing fails for them that an engine only reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.schema.relaxed import relaxed_schema
from tests.support.schemas import schemas


def relaxed(schema: Any) -> Any:
    return json.loads(relaxed_schema(json.dumps(schema).encode(), "p"))


SAME: list[Any] = [
    {},
    {"type": "object", "properties": {"a": {"type": "number", "minimum": 0, "not": {}}}, "minProperties": 3},
    {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"next": {"$ref": "#/$defs/a"}}}}},
    {"type": "string", "description": "d", "format": "email", "maxLength": 9, "default": "x"},
    {"oneOf": [{"type": "integer"}, {"type": "number"}], "if": {}, "uniqueItems": True},
    {"properties": {"]": {}}, "additionalProperties": False},
]


@pytest.mark.parametrize("schema", SAME)
def test_what_an_engine_takes_goes_on_byte_for_byte(schema: Any) -> None:
    data = json.dumps(schema, indent=1).encode()
    assert relaxed_schema(data, "p") is data


CHANGED: list[tuple[Any, Any]] = [
    ({"properties": {"a": True, "b": False}}, {"properties": {"a": {}, "b": {}}}),
    ({"items": True}, {"items": {}}),
    ({"properties": {"a": {"type": "string", "required": True}}}, {"properties": {"a": {"type": "string"}}}),
    ({"$ref": "https://example.com/x", "title": "t"}, {"title": "t"}),
    ({"properties": {"me": {"$ref": "#"}}}, {"properties": {"me": {}}}),
    ({"$ref": "#/$defs/none"}, {}),
    ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {}}}, {"$defs": {"a/b": {}}}),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}},
        {"$defs": {"a": {"anyOf": [{}, {}]}}},
    ),
    ({"type": "string", "pattern": "(?=a)"}, {"type": "string"}),
    ({"type": "string", "pattern": "^\\d$"}, {"type": "string", "pattern": "^[0-9]$"}),
    ({"type": "string", "maxLength": 100_000, "minLength": 1.0}, {"type": "string", "minLength": 1}),
    ({"enum": list(range(501)), "type": "integer"}, {"type": "integer"}),
    ({"properties": {"]": {}}, "additionalProperties": True}, {"properties": {"]": {}}}),
    ({"properties": {"]": {}}, "additionalProperties": {}}, {"properties": {"]": {}}}),
]


@pytest.mark.parametrize(("schema", "found"), CHANGED)
def test_what_an_engine_fails_at_is_left_out(schema: Any, found: Any) -> None:
    assert relaxed(schema) == found


@pytest.mark.parametrize(
    ("schema", "param"),
    [
        ({"properties": []}, "p.properties"),
        ({"properties": {"a": {"type": "strnig"}}}, "p.properties.a.type"),
        ({"properties": {"a": "string"}}, "p.properties.a"),
        # An engine never comes back from this.
        ({"items": {"minLength": 5, "maxLength": 3}}, "p.items.minLength"),
        ({"anyOf": [{}, {"enum": []}]}, "p.anyOf[1].enum"),
    ],
)
def test_what_is_no_schema_is_named(schema: Any, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        relaxed(schema)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", param)


@settings(max_examples=100, deadline=None)
@given(schemas())
def test_once_relaxed_it_stays_as_it_is(schema: Any) -> None:
    data = relaxed_schema(json.dumps(schema).encode(), "p")
    assert relaxed_schema(data, "p") is data
