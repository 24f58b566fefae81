"""JSON schemas as clients write them, and the values that an engine makes for a shape of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

NAMES = st.sampled_from(["a", "b", "c", "x-y", "é", "]", "", "$ref"])
PATTERNS = ["^a+$", "^[A-Z]{2}-\\d{3}$", "b|c$", "^(foo|ba[rz])?$", "^[^a]{1,3}$", "x"]


def _plain() -> st.SearchStrategy[Any]:
    low = st.integers(0, 3)
    return st.one_of(
        st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": "number"}, {"type": "string"}, {}]),
        st.builds(
            lambda a, b: {"type": "integer", "minimum": a, "maximum": a + b}, st.integers(-99, 99), low
        ),
        st.builds(lambda a: {"type": "integer", "exclusiveMaximum": a}, st.integers(-99, 99)),
        st.builds(lambda a: {"type": ["integer", "null"], "minimum": a}, st.floats(-99, 99)),
        st.builds(lambda a, b: {"type": "string", "minLength": a, "maxLength": a + b}, low, low),
        st.builds(lambda p: {"type": "string", "pattern": p}, st.sampled_from(PATTERNS)),
        st.builds(lambda f: {"type": "string", "format": f}, st.sampled_from(["date", "uuid", "email"])),
        st.lists(st.sampled_from([1, 1.0, "a", None, True, [1], {"k": "v"}]), min_size=1, max_size=3).map(
            lambda values: {"enum": values}
        ),
        st.sampled_from([0, False, "a", {"k": [None]}]).map(lambda value: {"const": value}),
    )


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda properties, required, more: {
            "type": "object",
            "properties": properties,
            "required": sorted({*required, *list(properties)[:1]}),
            **({} if more is None else {"additionalProperties": more}),
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.lists(NAMES, max_size=2),
        st.sampled_from([None, True, False]) | inner,
    )


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    low = st.integers(0, 2)
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        _objects(inner),
        st.builds(lambda i, a: {"type": "array", "items": i, "minItems": a, "maxItems": a + 2}, inner, low),
        several.map(lambda items: {"type": "array", "prefixItems": items}),
        several.map(lambda items: {"type": "array", "items": items}),
        *(st.fixed_dictionaries({word: several}) for word in ("anyOf", "oneOf", "allOf")),
        st.builds(lambda one, more: {**one, "anyOf": more}, _objects(inner), several),
        st.sampled_from(
            [
                {"$ref": "#/$defs/leaf", "title": "t"},
                {"$ref": "#"},
                {"$ref": "#/$defs/leaf", "type": "integer"},
            ]
        ),
    )


def schemas() -> st.SearchStrategy[Schema]:
    """Schemas of every keyword that may be kept to; not all of them can."""
    inner = _nested(_plain() | _nested(_plain() | _nested(_plain())))
    return st.builds(lambda root, leaf: {**root, "$defs": {"leaf": leaf}}, inner, _plain())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def made(shape: Mapping[str, Any], defs: Mapping[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """What an engine that keeps to ``shape`` may say: members in order, nothing undescribed."""
    if "$ref" in shape:
        target = defs[shape["$ref"].rpartition("/")[2]]
        return st.nothing() if depth > 6 else st.deferred(lambda: made(target, defs, depth + 1))
    if "enum" in shape:
        return st.sampled_from(shape["enum"])
    if "anyOf" in shape:
        return st.one_of([made(each, defs, depth) for each in shape["anyOf"]])
    kind = shape.get("type")
    if kind == "object":
        return _made_object(shape, defs, depth)
    if kind == "array":
        if "prefixItems" in shape:
            return st.tuples(*(made(each, defs, depth) for each in shape["prefixItems"])).map(list)
        low = shape.get("minItems", 0)
        return st.lists(
            made(shape["items"], defs, depth), min_size=low, max_size=shape.get("maxItems", low + 2)
        )
    if kind == "string":
        if "pattern" in shape:
            return st.from_regex(shape["pattern"], fullmatch=True)
        if shape.get("format") == "date":
            return st.dates().map(str)
        if shape.get("format") == "uuid":
            return st.uuids().map(str)
        low = shape.get("minLength", 0)
        return st.text(min_size=low, max_size=shape.get("maxLength", low + 3))
    simple: dict[Any, st.SearchStrategy[Any]] = {
        None: JSON,
        "integer": st.integers(shape.get("minimum", -(10**16) + 1), shape.get("maximum", 10**16 - 1)),
        "number": st.integers(-999, 999) | st.floats(-1e9, 1e9),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return simple[kind]


@st.composite
def _made_object(draw: st.DrawFn, shape: Mapping[str, Any], defs: Mapping[str, Any], depth: int) -> Any:
    more = shape.get("additionalProperties")
    if "properties" not in shape:
        return draw(
            st.dictionaries(st.text(max_size=3), JSON if more in (None, True) else made(more, defs, depth))
        )
    found = {
        name: draw(made(each, defs, depth))
        for name, each in shape["properties"].items()
        if name in shape["required"] or (depth < 4 and draw(st.booleans()))
    }
    if more and draw(st.booleans()):
        value = draw(JSON if more is True else made(more, defs, depth))
        found.setdefault("another", value)
    return found
