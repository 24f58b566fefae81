"""JSON Schema (2020-12) of what clients send and get, for the document that describes the routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
NULL: Final[Schema] = {"type": "null"}


def literal(*values: str) -> Schema:
    """One of these texts."""
    return {"enum": list(values)}


def nullable(schema: Schema) -> Schema:
    """Also null."""
    return {"anyOf": [schema, NULL]}


def either(*schemas: Schema) -> Schema:
    """Any of several."""
    return {"anyOf": list(schemas)}


def listed(schema: Schema, *, least: int = 0) -> Schema:
    """A list of such values."""
    return {"type": "array", "items": schema, **({"minItems": least} if least else {})}


def shape(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these members; further ones may come with a later version."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def of_type(kind: Any) -> Schema:
    """The schema of a type that msgspec knows, without references: small types may stand there twice."""
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    inlined: Schema = _inlined(schema, parts)
    return inlined


def of_envelope(
    envelope: type[msgspec.Struct],
    fields: Mapping[str, Schema],
    *,
    required: tuple[str, ...] = (),
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Schema:
    """The schema of a request body that is decoded into ``envelope``.

    ``fields`` describes those that it keeps raw; ``ranges`` are bounds of numbers, both included. Whatever is
    not required may be null.
    """
    properties: dict[str, Schema] = {}
    for field in msgspec.structs.fields(envelope):
        name = field.encode_name
        if name in fields:
            schema = fields[name] if name in required else nullable(fields[name])
        else:
            schema = of_type(field.type)
        properties[name] = _bounded(schema, *ranges[name]) if ranges and name in ranges else schema
    return {"type": "object", "properties": properties, "required": list(required)}


def _bounded(schema: Schema, low: float, high: float) -> Schema:
    if schema.get("type") in ("integer", "number"):
        return {**schema, "minimum": low, "maximum": high}
    if "anyOf" in schema:
        return {**schema, "anyOf": [_bounded(each, low, high) for each in schema["anyOf"]]}
    return schema


def _inlined(value: Any, parts: Mapping[str, Schema]) -> Any:
    if isinstance(value, list):
        return [_inlined(each, parts) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _inlined(parts[value["$ref"]], parts)
    # Titles and docstrings are names and notes of the code.
    return {key: _inlined(each, parts) for key, each in value.items() if key not in ("title", "description")}
