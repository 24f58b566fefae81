"""A schema of one type: the keywords that an engine keeps to, the others refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from relaydesk.core.gateway.decode import invalid, unsupported
from relaydesk.core.gateway.schema.keywords import Schema, below, contradiction, refused
from relaydesk.core.gateway.schema.pattern import PatternError, engine_pattern

# Longer counts are dropped in silence by the engine, or refused without a reason.
MAX_COUNT: Final = 1000
# Whole numbers have at most 16 digits there.
MAX_WHOLE: Final = 10**16 - 1

Write = Callable[[object, str], Schema]

# Written into the grammar by the engine; every other format is a note.
_FORMATS: Final = re.compile(r"date|time|date-time|uuid[1-5]?")
# The rule for undescribed names is made of the letters of the others, unescaped.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_. :/@$-]*")


def write_type(write: Write, schema: Schema, name: str, at: str) -> Schema:
    """``schema`` for values of the type ``name``; ``write`` writes the schemas inside. Raises `PeerError`."""
    if name in _NESTED:
        return _NESTED[name](write, schema, at)
    return _SIMPLE[name](schema, at) if name in _SIMPLE else {"type": name}


def are_plain(names: Iterable[str]) -> bool:
    """Whether the engine can tell these properties from undescribed ones."""
    return all(map(_PLAIN_NAME.fullmatch, names))


def _object(write: Write, schema: Schema, at: str) -> Schema:
    required: list[str] = list(dict.fromkeys(schema.get("required", ())))
    described: dict[str, Any] = schema.get("properties", {})
    more = schema.get("additionalProperties")
    _refuse_for_objects(schema, len(required), at)
    properties = {name: write(each, below(at, "properties", name)) for name, each in described.items()}
    if missing := [name for name in required if name not in described]:
        if more is False:
            where = below(at, "required")
            raise invalid(where, f"{where} has a name that additionalProperties forbids")
        rest = write(more, below(at, "additionalProperties")) if isinstance(more, dict) else {}
        properties |= dict.fromkeys(missing, rest)
    shape: Schema = {"type": "object"}
    if properties or "properties" in schema or more is False:
        shape |= {"properties": properties, "required": required}
    where = below(at, "additionalProperties")
    if isinstance(more, dict):
        if not are_plain(properties):
            raise unsupported(
                where, f"{where} is only supported beside properties named in plain letters", "leave it out"
            )
        shape["additionalProperties"] = write(more, where)
    elif more is True and are_plain(properties):
        shape["additionalProperties"] = True
    elif more is False:
        shape["additionalProperties"] = False
    return shape


def _refuse_for_objects(schema: Schema, required: int, at: str) -> None:
    """What is not enforced for objects, unless it happens to say nothing."""
    closed = "properties" in schema and schema.get("additionalProperties", False) is False
    harmless: dict[str, Callable[[Any], bool]] = {
        "patternProperties": lambda value: not value,
        "propertyNames": lambda value: value is True or value in ({}, {"type": "string"}),
        "minProperties": lambda value: value <= required,
        "maxProperties": lambda value: closed and value >= len(schema["properties"]),
        "dependentRequired": lambda value: not value,
        "dependentSchemas": lambda value: not value,
        "dependencies": lambda value: not value,
        "unevaluatedProperties": lambda value: value is True or (value is False and closed),
    }
    _refuse(schema, harmless, at)


def _array(write: Write, schema: Schema, at: str) -> Schema:
    items, tuple_ = schema.get("items"), schema.get("prefixItems")
    if isinstance(items, list):
        # The older spelling of the same.
        items, tuple_ = schema.get("additionalItems"), items
    _refuse(
        schema,
        {
            "uniqueItems": lambda value: not value,
            "contains": lambda value: value is True and schema.get("minContains", 1) == 0,
            "unevaluatedItems": lambda value: isinstance(value, bool),
        },
        at,
    )
    low, high = _counts(schema, "minItems", "maxItems", at)
    if tuple_:
        return _tuple(write, tuple_, (low, high), at)
    if items is False:
        if low:
            raise contradiction(at, "minItems", "items")
        low, high, items = 0, 0, True
    shape: Schema = {"type": "array", "items": {} if items is None else write(items, below(at, "items"))}
    if low:
        shape["minItems"] = low
    if high is not None:
        shape["maxItems"] = high
    return shape


def _tuple(write: Write, items: list[Any], counts: tuple[int, int | None], at: str) -> Schema:
    """A tuple is made complete and no longer."""
    low, high = counts
    if low > len(items):
        where = below(at, "minItems")
        raise unsupported(where, f"{where} asks for more than the {len(items)} entries that are described")
    if high is not None and high < len(items):
        items = items[:high]
        if not items:
            return {"type": "array", "items": {}, "maxItems": 0}
    shapes = [write(each, below(at, "prefixItems", number)) for number, each in enumerate(items)]
    return {"type": "array", "prefixItems": shapes, "minItems": len(shapes), "maxItems": len(shapes)}


def _string(schema: Schema, at: str) -> Schema:
    low, high = _counts(schema, "minLength", "maxLength", at)
    counted = bool(low) or high is not None
    shape: Schema = {"type": "string"}
    if "pattern" in schema:
        if counted:
            raise refused(at, "minLength" if low else "maxLength", " beside pattern")
        try:
            return {**shape, "pattern": engine_pattern(schema["pattern"])}
        except PatternError as error:
            where = below(at, "pattern")
            raise unsupported(
                where, f"{where} cannot be enforced here: {error}", "say it in words or simplify it"
            ) from None
    if low:
        shape["minLength"] = low
    if high is not None:
        shape["maxLength"] = high
    named = schema.get("format")
    if named is not None and not counted and _FORMATS.fullmatch(named):
        shape["format"] = named
    return shape


def _integer(schema: Schema, at: str) -> Schema:
    _refuse(schema, {"multipleOf": lambda value: value == 1}, at)
    lows = [("minimum", math.ceil), ("exclusiveMinimum", lambda value: math.floor(value) + 1)]
    highs = [("maximum", math.floor), ("exclusiveMaximum", lambda value: math.ceil(value) - 1)]
    found = [max(((f(schema[n]), n) for n, f in lows if n in schema), default=None)]
    found += [min(((f(schema[n]), n) for n, f in highs if n in schema), default=None)]
    if found == [None, None]:
        return {"type": "integer"}
    # Both ends, always: the engine's rules for an open one let zeros stand in front.
    low, high = found[0] or (-MAX_WHOLE, ""), found[1] or (MAX_WHOLE, "")
    for end, within in ((low, low[0] <= MAX_WHOLE), (high, high[0] >= -MAX_WHOLE)):
        if not within:
            raise refused(at, end[1], ": whole numbers have at most 16 digits")
    if low[0] > high[0]:
        raise contradiction(at, low[1], high[1])
    return {"type": "integer", "minimum": max(low[0], -MAX_WHOLE), "maximum": min(high[0], MAX_WHOLE)}


def _number(schema: Schema, at: str) -> Schema:
    for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
        if name in schema:
            raise refused(at, name, " unless the type is integer")
    return {"type": "number"}


def _counts(schema: Schema, low: str, high: str, at: str) -> tuple[int, int | None]:
    for name in (low, high):
        if schema.get(name, 0) > MAX_COUNT:
            raise unsupported(
                below(at, name), f"{below(at, name)} is {schema[name]}, allowed here is {MAX_COUNT}"
            )
    most = schema.get(high)
    return int(schema.get(low, 0)), None if most is None else int(most)


def _refuse(schema: Schema, harmless: dict[str, Callable[[Any], bool]], at: str) -> None:
    for name, says_nothing in harmless.items():
        if name in schema and not says_nothing(schema[name]):
            raise refused(at, name)


_NESTED: Final[dict[str, Callable[[Write, Schema, str], Schema]]] = {"object": _object, "array": _array}
_SIMPLE: Final[dict[str, Callable[[Schema, str], Schema]]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
}
