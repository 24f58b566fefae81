"""Shapes that are a list of values: ``enum`` and ``const``."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, cast

from relaydesk.core.gateway.decode import invalid
from relaydesk.core.gateway.schema.keywords import KEYWORDS, Schema, below, refused

_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    str: "string",
    list: "array",
    dict: "object",
}


def write_values(schema: Schema, at: str) -> Schema:
    """A schema with ``const`` or ``enum`` as the values that its ``type`` leaves.

    Raises `PeerError` where none is left, or where another keyword speaks about one of them: the engine looks
    at nothing but the list.
    """
    word = "const" if "const" in schema else "enum"
    values = [schema["const"]] if word == "const" else schema["enum"]
    if (
        word == "const"
        and "enum" in schema
        and not set(map(identity, values)) & set(map(identity, schema["enum"]))
    ):
        raise invalid(below(at, "const"), f"{below(at, 'const')} is not in the enum beside it")
    named = schema.get("type")
    types = None if named is None else set(named if isinstance(named, list) else [named])
    kept = {identity(value): value for value in values if types is None or _is_one_of(value, types)}
    if not kept:
        where = below(at, word)
        raise invalid(where, f"{where} has no value of the type beside it")
    kinds = {kind(value) for value in kept.values()}
    for name in schema:
        if any(name in KEYWORDS.get(each, ()) for each in kinds):
            raise refused(at, name, f" beside {word}")
    return {"enum": list(kept.values())}


def identity(value: Any) -> Hashable:
    """Equal for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, list):
        return ("list", *map(identity, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, identity(each)) for name, each in value.items()))
    return cast("Hashable", value)


def kind(value: Any) -> str:
    """The type of a value; whole numbers are numbers too."""
    return _KINDS.get(type(value), "number")


def _is_one_of(value: Any, types: set[str]) -> bool:
    name = kind(value)
    return name in types or (
        name == "number" and "integer" in types and (isinstance(value, int) or value.is_integer())
    )
