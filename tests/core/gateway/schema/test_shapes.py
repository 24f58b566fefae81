"""A client's schemas as an engine keeps to them: never wider than what was asked."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.schema.shapes import MAX_ALTERNATIVES, MAX_SCHEMA_BYTES, Shapes
from tests.support.schemas import made, schemas

LEAF = {"$defs": {"leaf": {"type": "integer"}}}


def written(schema: Any) -> Any:
    shapes = Shapes()
    return json.loads(shapes.document(shapes.add(json.dumps(schema).encode(), "s")))


def refused(schema: Any) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        written(schema)
    return caught.value.fault.code, caught.value.fault.param


@settings(max_examples=150, deadline=None)
@given(schemas(), st.data())
def test_what_is_made_for_the_shape_is_valid_for_the_schema(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    shapes, fault = Shapes(), None
    try:
        shape = shapes.add(json.dumps(schema).encode(), "s")
    except PeerError as error:
        fault = error.fault
    if fault is not None:
        assert fault.param is not None and fault.param.startswith("s")
        return
    values = made(shape, shapes.defs)
    if values.is_empty:
        return
    value = data.draw(values)
    jsonschema.Draft202012Validator(modern(schema)).validate(value)


def modern(schema: Any) -> Any:
    """Tuples in the older spelling, which the validator of this draft does not know."""
    if isinstance(schema, list):
        return [modern(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: modern(each) for name, each in schema.items()}
    if found.get("type") == "array" and isinstance(found.get("items"), list):
        found["prefixItems"] = found.pop("items")
    return found


KEPT: list[tuple[Any, Any]] = [
    ({"type": "object"}, {"type": "object"}),
    ({"type": "object", "properties": {}}, {"type": "object", "properties": {}, "required": []}),
    ({"required": ["a"]}, {"type": "object", "properties": {"a": {}}, "required": ["a"]}),
    ({"properties": {"a": True}}, {"type": "object", "properties": {"a": {}}, "required": []}),
    ({"items": {"type": "null"}}, {"type": "array", "items": {"type": "null"}}),
    ({"type": "array", "minItems": 2.0}, {"type": "array", "items": {}, "minItems": 2}),
    ({"minLength": 2}, {"type": "string", "minLength": 2}),
    ({"title": "t", "x-y": 1, "default": 3, "examples": [], "deprecated": True}, {}),
    ({"type": "string", "format": "email", "description": "d"}, {"type": "string"}),
    ({"type": "string", "format": "date", "maxLength": 9}, {"type": "string", "maxLength": 9}),
    ({"type": "integer", "minimum": 1.5}, {"type": "integer", "minimum": 2, "maximum": 10**16 - 1}),
    ({"type": "integer", "maximum": -3}, {"type": "integer", "minimum": 1 - 10**16, "maximum": -3}),
    (
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3},
        {"type": "integer", "minimum": 2, "maximum": 2},
    ),
    (
        {"type": "integer", "multipleOf": 1, "minimum": -(10**40)},
        {"type": "integer", "minimum": 1 - 10**16, "maximum": 10**16 - 1},
    ),
    ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ({"type": "string", "enum": ["a", 1, "a"]}, {"enum": ["a"]}),
    ({"const": None, "type": "null"}, {"enum": [None]}),
    ({"allOf": [{"type": "integer"}]}, {"type": "integer"}),
    ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    ({"$ref": "#/$defs/leaf", **LEAF}, {"$ref": "#/$defs/d0", "$defs": {"d0": {"type": "integer"}}}),
    (
        {"$ref": "#/$defs/leaf", "minimum": 4, "maximum": 4, **LEAF},
        {"type": "integer", "minimum": 4, "maximum": 4},
    ),
    (
        {"$ref": "#/$defs/a~1b~0%25", "$defs": {"a/b~%": {"type": "null"}}},
        {"$ref": "#/$defs/d0", "$defs": {"d0": {"type": "null"}}},
    ),
    (
        {"properties": {"n": {"$ref": "#"}}},
        {
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/d0"}},
            "required": [],
            "$defs": {"d0": {"type": "object", "properties": {"n": {"$ref": "#/$defs/d0"}}, "required": []}},
        },
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"type": "string"}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ),
    (
        {"properties": {"a]": True}, "additionalProperties": True},
        {"type": "object", "properties": {"a]": {}}, "required": []},
    ),
    (
        {"type": "array", "items": [True], "additionalItems": False},
        {"type": "array", "prefixItems": [{}], "minItems": 1, "maxItems": 1},
    ),
    ({"type": "array", "items": False}, {"type": "array", "items": {}, "maxItems": 0}),
    ({"type": "array", "uniqueItems": False, "unevaluatedItems": False}, {"type": "array", "items": {}}),
    (
        {"anyOf": [{"anyOf": [{"type": "null"}, {"type": "string"}]}, True]},
        {"anyOf": [{"type": "null"}, {"type": "string"}, {}]},
    ),
]


@pytest.mark.parametrize(("schema", "shape"), KEPT)
def test_what_is_kept_to(schema: Any, shape: Any) -> None:
    assert written(schema) == shape


UNSUPPORTED: list[tuple[Any, str]] = [
    ({"properties": {"x": {"type": "string", "pattern": "(?=a)b"}}}, "s.properties.x.pattern"),
    ({"properties": {"x": {"type": "number", "minimum": 0}}}, "s.properties.x.minimum"),
    ({"minimum": 0}, "s.minimum"),
    ({"type": "integer", "multipleOf": 3}, "s.multipleOf"),
    ({"type": "array", "items": {"not": {}}}, "s.items.not"),
    ({"if": {}, "then": {}}, "s.if"),
    ({"type": "array", "uniqueItems": True}, "s.uniqueItems"),
    ({"type": "array", "contains": {}}, "s.contains"),
    ({"type": "object", "patternProperties": {"a": {}}}, "s.patternProperties"),
    ({"type": "object", "propertyNames": {"pattern": "a"}}, "s.propertyNames"),
    ({"type": "object", "minProperties": 1}, "s.minProperties"),
    ({"type": "object", "maxProperties": 1}, "s.maxProperties"),
    ({"properties": {}, "dependentRequired": {"a": ["b"]}}, "s.dependentRequired"),
    ({"type": "string", "maxLength": 1001}, "s.maxLength"),
    ({"type": "array", "minItems": 1001}, "s.minItems"),
    ({"type": "array", "prefixItems": [{}], "minItems": 2}, "s.minItems"),
    ({"type": "string", "pattern": "^a$", "maxLength": 3}, "s.maxLength"),
    ({"enum": ["a"], "maxLength": 3}, "s.maxLength"),
    ({"anyOf": [{}, {"properties": {"a": {"not": {}}}}]}, "s.anyOf[1].properties.a.not"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "s.oneOf"),
    ({"properties": {"]": {}}, "additionalProperties": {}}, "s.additionalProperties"),
    ({"allOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]}, "s.allOf.pattern"),
    ({"allOf": [{"type": "string"}, {"type": "null"}]}, "s.allOf.type"),
    ({"$ref": "https://example.com/s.json"}, "s.$ref"),
    ({"$ref": "other.json#/a"}, "s.$ref"),
    ({"$ref": "#name"}, "s.$ref"),
    ({"properties": {"a": False}}, "s.properties.a"),
    ({"type": "integer", "minimum": 10**17}, "s.minimum"),
    ({"enum": list(range(MAX_ALTERNATIVES + 1))}, "s"),
    ({"properties": {f"p{number}": {} for number in range(MAX_ALTERNATIVES + 1)}}, "s"),
    ({"anyOf": [{"enum": [f"{a}-{b}" for b in range(60)]} for a in range(10)]}, "s"),
]


@pytest.mark.parametrize(("schema", "param"), UNSUPPORTED)
def test_what_is_not_kept_to_is_refused_by_name(schema: Any, param: str) -> None:
    assert refused(schema) == ("unsupported", param)


INVALID: list[tuple[Any, str]] = [
    ({"type": "strnig"}, "s.type"),
    ({"type": []}, "s.type"),
    ({"type": 3}, "s.type"),
    ({"properties": []}, "s.properties"),
    ({"properties": {"a": 3}}, "s.properties.a"),
    ({"required": "a"}, "s.required"),
    ({"enum": []}, "s.enum"),
    ({"type": "integer", "enum": [1.5, "a"]}, "s.enum"),
    ({"const": 1, "enum": [2]}, "s.const"),
    ({"anyOf": []}, "s.anyOf"),
    ({"type": "array", "items": 3}, "s.items"),
    ({"type": "string", "minLength": -1}, "s.minLength"),
    ({"type": "string", "maxLength": 1.5}, "s.maxLength"),
    ({"type": "string", "pattern": 3}, "s.pattern"),
    ({"type": "integer", "minimum": "1"}, "s.minimum"),
    ({"type": "integer", "exclusiveMinimum": True}, "s.exclusiveMinimum"),
    # An engine never comes back from these.
    ({"type": "string", "minLength": 5, "maxLength": 3}, "s.minLength"),
    ({"type": "array", "minItems": 5, "maxItems": 3}, "s.minItems"),
    ({"type": "integer", "minimum": 5, "maximum": 3}, "s.minimum"),
    ({"allOf": [{"minLength": 5}, {"maxLength": 3}]}, "s.minLength"),
    ({"required": ["a"], "additionalProperties": False}, "s.required"),
    ({"$ref": "#/$defs/none"}, "s.$ref"),
    ({"$ref": 3}, "s.$ref"),
    ({"$ref": "#"}, "s"),
    ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "s"),
    ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "s"),
]


@pytest.mark.parametrize(("schema", "param"), INVALID)
def test_what_is_no_schema_is_named(schema: Any, param: str) -> None:
    assert refused(schema) == ("invalid_request", param)


def test_schemas_beyond_all_bounds() -> None:
    assert refused({"const": "x" * MAX_SCHEMA_BYTES}) == ("invalid_request", "s")
    assert refused({"minimum": 1}) == ("unsupported", "s.minimum")
    with pytest.raises(PeerError) as caught:
        Shapes().add(b'{"const":1e999}', "s")
    assert caught.value.fault.param == "s"
    deep: Any = {}
    for _ in range(70):
        deep = {"items": deep}
    assert refused(deep) == ("invalid_json", "s")
    # References that nest what the text does not, and joints that double at each step.
    chain = {f"n{n}": {"items": {"$ref": f"#/$defs/n{n + 1}"}} for n in range(200)}
    assert refused({"$ref": "#/$defs/n0", "$defs": {**chain, "n200": True}})[0] == "invalid_json"
    endless = {
        "$ref": "#/$defs/a",
        "title": "t",
        "minLength": 1,
        "$defs": {"a": {"$ref": "#/$defs/a", "minLength": 1}},
    }
    assert refused(endless)[0] == "invalid_json"
    doubling = {f"n{n}": {"allOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 2} for n in range(40)}
    assert (
        refused({"allOf": [{"$ref": "#/$defs/n0"}], "$defs": {**doubling, "n40": True}})[0] == "unsupported"
    )


def test_schemas_of_one_request_share_their_definitions_and_bounds() -> None:
    shapes = Shapes()
    tree = json.dumps({"$ref": "#/$defs/leaf", **LEAF}).encode()
    both = {"anyOf": [shapes.add(tree, "one"), shapes.add(tree, "two")]}
    found = json.loads(shapes.document(both))
    assert found["anyOf"] == [{"$ref": "#/$defs/d0"}, {"$ref": "#/$defs/d1"}]
    assert found["$defs"] == {"d0": {"type": "integer"}, "d1": {"type": "integer"}}
    large = json.dumps({"title": "x" * (MAX_SCHEMA_BYTES // 2)}).encode()
    shapes.add(large, "three")
    with pytest.raises(PeerError) as caught:
        shapes.add(large, "four")
    assert caught.value.fault.param == "four"
