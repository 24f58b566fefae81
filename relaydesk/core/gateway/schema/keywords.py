"""The keywords of JSON Schema that mean something here, and what each may be.

Everything else in a schema is a note: an engine reads past it, and so may we.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import invalid, unsupported
from relaydesk.core.text import safe_text

Schema = dict[str, Any]

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")

# Which type a keyword speaks about: a value of another type passes it.
KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "object": (
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
        *("minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies"),
        "unevaluatedProperties",
    ),
    "array": (
        *("items", "prefixItems", "minItems", "maxItems", "additionalItems", "uniqueItems", "contains"),
        *("minContains", "maxContains", "unevaluatedItems"),
    ),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
# These speak about a value of any type.
GENERAL: Final = ("$ref", "allOf", "anyOf", "oneOf", "type", "const", "enum", "not", "if")
CONSTRAINTS: Final = frozenset({*GENERAL, *(name for names in KEYWORDS.values() for name in names)})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    """A count may be written 2.0."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == value // 1
    )


def _is_type(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_schema(value: object) -> bool:
    return isinstance(value, dict | bool)


_RULES: Final[tuple[tuple[Callable[[object], bool], str, tuple[str, ...]], ...]] = (
    (_is_type, f"one or more of {', '.join(TYPES)}", ("type",)),
    (_is_text, "a string", ("$ref", "pattern", "format")),
    (_is_list, "a list of at least one entry", ("enum", "allOf", "anyOf", "oneOf")),
    (_is_texts, "a list of names", ("required",)),
    (
        _is_object,
        "an object",
        ("properties", "patternProperties", "dependentRequired", "dependentSchemas", "dependencies"),
    ),
    (_is_object, "an object", ("$defs", "definitions")),
    (lambda value: isinstance(value, list), "a list", ("prefixItems",)),
    (lambda value: isinstance(value, dict | bool | list), "a schema", ("items",)),
    (
        _is_schema,
        "a schema",
        (
            *("additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems"),
            *("additionalItems", "contains", "not", "if"),
        ),
    ),
    (
        _is_count,
        "a whole number from 0",
        (
            *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
            *("minContains", "maxContains"),
        ),
    ),
    (_is_number, "a number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
    (lambda value: isinstance(value, bool), "true or false", ("uniqueItems",)),
)
_CHECKS: Final = {name: (holds, words) for holds, words, names in _RULES for name in names}
_PAIRS: Final = (("minLength", "maxLength"), ("minItems", "maxItems"))


def below(at: str, *steps: str | int) -> str:
    """The name of a place in a schema, for people and as an error's ``param``."""
    for step in steps:
        at += f"[{step}]" if isinstance(step, int) else f".{safe_text(step, 64)}"
    return at


def check_keywords(schema: object, at: str) -> Schema:
    """``schema`` where it is an object whose keywords are what they must be.

    Raises `PeerError` ``invalid_request`` naming the first that is not, or two that contradict each other:
    engines answer those with a hang.
    """
    if not isinstance(schema, dict):
        raise invalid(at, f"{at} must be an object or true, as every JSON schema")
    for name, value in schema.items():
        check = _CHECKS.get(name)
        if check is not None and not check[0](value):
            where = below(at, name)
            raise invalid(where, f"{where} must be {check[1]}")
    for low, high in _PAIRS:
        if low in schema and high in schema and schema[low] > schema[high]:
            raise contradiction(at, low, high)
    return schema


def contradiction(at: str, low: str, high: str) -> PeerError:
    """Nothing can be as both keywords want it."""
    where = below(at, low)
    return invalid(where, f"{where} is beyond {high}, so that nothing fits")


def refused(at: str, name: str, why: str = "") -> PeerError:
    """A keyword that no engine here keeps to; ``why`` goes behind "here"."""
    where = below(at, name)
    return unsupported(where, f"{where} cannot be enforced here{why}", "leave it out or say it in words")
