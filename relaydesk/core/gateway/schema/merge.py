"""Several schemas that must all hold, as one.

Engines keep to one of them at best, so ``allOf``, and whatever stands beside ``$ref``, ``anyOf`` and
``oneOf``, is joined keyword by keyword. What cannot be joined is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from relaydesk.core.gateway.decode import unsupported
from relaydesk.core.gateway.schema.keywords import CONSTRAINTS, Schema, below
from relaydesk.core.gateway.schema.values import identity

_BOUNDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum"), max),
    **dict.fromkeys(("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum"), min),
}


def joined(parts: Sequence[Schema], at: str) -> Schema:
    """One schema that allows what all ``parts`` allow; they stand at ``at``.

    Raises `PeerError` ``unsupported`` where one keyword is said twice in ways that cannot be joined.
    """
    found: Schema = {}
    for part in parts:
        for name, value in part.items():
            if name not in CONSTRAINTS and name != "format":
                continue
            if name not in found or identity(found[name]) == identity(value):
                found[name] = value
            elif name in _BOUNDS:
                found[name] = _BOUNDS[name](found[name], value)
            elif name == "properties":
                found[name] = _properties(found[name], value, at)
            elif name == "required":
                found[name] = list(dict.fromkeys([*found[name], *value]))
            elif name == "type":
                found[name] = _types(found[name], value, at)
            elif name == "enum":
                found[name] = _values(found[name], value, at)
            elif name != "format":
                raise unsupported(
                    below(at, name), f"{at} has {name} in several places, which cannot be joined here"
                )
    _check_closed(parts, at)
    return found


def _properties(one: dict[str, Any], other: dict[str, Any], at: str) -> dict[str, Any]:
    for name in one.keys() & other.keys():
        if identity(one[name]) != identity(other[name]):
            where = below(at, "properties", name)
            raise unsupported(where, f"{where} is described in several places, which cannot be joined here")
    return {**one, **other}


def _types(one: Any, other: Any, at: str) -> list[str]:
    first, second = (value if isinstance(value, list) else [value] for value in (one, other))
    both = [name for name in first if name in second or (name == "integer" and "number" in second)]
    if "number" in first and "integer" in second and "integer" not in both:
        both.append("integer")
    if not both:
        raise unsupported(below(at, "type"), f"{at} wants types that exclude each other")
    return both


def _values(one: list[Any], other: list[Any], at: str) -> list[Any]:
    theirs = set(map(identity, other))
    both = [value for value in one if identity(value) in theirs]
    if not both:
        raise unsupported(below(at, "enum"), f"{at} wants values that exclude each other")
    return both


def _check_closed(parts: Sequence[Schema], at: str) -> None:
    """``additionalProperties`` speaks only of the properties beside it: joined it would mean others."""
    closing = [part for part in parts if part.get("additionalProperties", True) is not True]
    if any(part is not only for only in closing for part in parts if part.get("properties")):
        where = below(at, "additionalProperties")
        raise unsupported(where, f"{where} cannot be joined with properties that are described elsewhere")
