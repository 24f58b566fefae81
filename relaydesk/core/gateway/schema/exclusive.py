"""Whether two shapes exclude each other: only then is ``anyOf``, which engines keep to, also ``oneOf``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from relaydesk.core.gateway.schema.keywords import TYPES, Schema
from relaydesk.core.gateway.schema.values import identity, kind

_MAX_DEPTH: Final = 8


def exclusive(one: Schema, other: Schema, defs: Mapping[str, Schema], depth: int = 0) -> bool:
    """Whether no value that is made for one also is one of the other.

    Both are as `Shapes` writes them; ``defs`` are what their references mean. False where that cannot be
    told.
    """
    one, other = _behind(one, defs), _behind(other, defs)
    if depth > _MAX_DEPTH:
        return False
    for first, second in ((one, other), (other, one)):
        if "anyOf" in first:
            return all(exclusive(each, second, defs, depth + 1) for each in first["anyOf"])
    values = one.get("enum"), other.get("enum")
    if values[0] is not None and values[1] is not None:
        return not set(map(identity, values[0])) & set(map(identity, values[1]))
    if not _kinds(one) & _kinds(other):
        return True
    if "properties" not in one or "properties" not in other:
        return False
    return (_lacks(one, other) and _lacks(other, one)) or _tagged(one, other, defs, depth)


def _behind(shape: Schema, defs: Mapping[str, Schema]) -> Schema:
    for _ in range(_MAX_DEPTH):
        if "$ref" not in shape:
            return shape
        shape = defs.get(shape["$ref"].rpartition("/")[2], {})
    return {}


def _kinds(shape: Schema) -> set[str]:
    if "enum" in shape:
        return {kind(value) for value in shape["enum"]}
    name = shape.get("type")
    kinds = set(TYPES) if name is None else {name}
    return kinds | {"number"} if "integer" in kinds else kinds


def _lacks(one: Schema, other: Schema) -> bool:
    """Whether objects of ``one`` never have a property that ``other`` demands."""
    if "additionalProperties" in one:
        return False
    return any(name not in one["properties"] for name in other.get("required", ()))


def _tagged(one: Schema, other: Schema, defs: Mapping[str, Schema], depth: int) -> bool:
    """Whether a property that both demand tells them apart."""
    both = set(one.get("required", ())) & set(other.get("required", ()))
    return any(
        exclusive(one["properties"][name], other["properties"][name], defs, depth + 1) for name in both
    )
