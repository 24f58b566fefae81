"""Schemas that describe and do not bind: the parameters of tools that a model may call or not.

The engine shows them to the model and, where the model begins a call, makes a grammar of them all the same.
What that cannot take fails the whole request, or hangs the engine, though nobody asked for a constraint. So a
keyword of that kind is left out, and the rest goes on as it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.schema.keywords import Schema, below, check_keywords
from relaydesk.core.gateway.schema.pattern import PatternError, engine_pattern
from relaydesk.core.gateway.schema.shapes import MAX_ALTERNATIVES, read_schema
from relaydesk.core.gateway.schema.types import MAX_COUNT, are_plain

_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS: Final = ("properties", "$defs", "definitions")
_SINGLE: Final = ("items", "additionalProperties")


def relaxed_schema(data: bytes, at: str) -> bytes:
    """A schema, JSON that stands at ``at``, as an engine takes it; ``data`` itself where that is the same.

    Raises `PeerError` ``invalid_request`` naming what is no schema at all.
    """
    root = read_schema(data, at)
    relaxer = _Relaxer(root)
    found = relaxer.schema(root, at)
    return encode(found) if relaxer.changed else data


class _Relaxer:
    """Walks one document. ``changed`` says whether anything was left out."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.changed = False

    def schema(self, schema: object, at: str) -> Schema:
        if isinstance(schema, bool):
            self.changed = True
            return {}
        if isinstance(schema, dict) and not isinstance(schema.get("required", []), list):
            # An older custom says it at each property, and the engine looks past it.
            self.changed = True
            schema = {name: value for name, value in schema.items() if name != "required"}
        checked = check_keywords(schema, at)
        return {
            name: each for name, value in checked.items() for each in self._kept(checked, name, value, at)
        }

    def _kept(self, schema: Schema, name: str, value: Any, at: str) -> Iterator[Any]:
        """A keyword's value as it goes on, nothing where it is left out."""
        where = below(at, name)
        if name in _MAPS:
            yield {key: self.schema(each, below(where, key)) for key, each in value.items()}
        elif name in _LISTS or (name == "items" and isinstance(value, list)):
            yield [self.schema(each, below(where, number)) for number, each in enumerate(value)]
        elif name in _SINGLE and isinstance(value, dict):
            if name == "items" or are_plain(schema.get("properties", ())):
                yield self.schema(value, where)
            else:
                self.changed = True
        elif self._is_taken(schema, name, value):
            yield self._plain(name, value)
        else:
            self.changed = True

    def _is_taken(self, schema: Schema, name: str, value: Any) -> bool:
        if name == "$ref":
            return self._leads_on(value)
        if name == "pattern":
            try:
                engine_pattern(value)
            except PatternError:
                return False
        if name == "additionalProperties":
            return value is False or are_plain(schema.get("properties", ()))
        if name == "enum":
            return len(value) <= MAX_ALTERNATIVES
        return name not in _COUNTS or value <= MAX_COUNT

    def _plain(self, name: str, value: Any) -> Any:
        """The value as the engine spells it."""
        spelled = value
        if name == "pattern":
            spelled = engine_pattern(value)
        elif name == "items" and isinstance(value, bool):
            spelled = {}
        elif name in _COUNTS:
            spelled = int(value)
        self.changed = self.changed or (type(spelled), spelled) != (type(value), value)
        return spelled

    def _leads_on(self, ref: str) -> bool:
        """Whether the engine finds what ``ref`` points to, and does not go round in circles there."""
        ahead, seen = [ref], set[str]()
        while ahead:
            pointer = ahead.pop()
            if pointer in seen:
                if pointer == ref:
                    return False
                continue
            seen.add(pointer)
            target = self._target(pointer)
            if not isinstance(target, dict):
                return False
            ahead += _heads(target)
        return True

    def _target(self, pointer: str) -> Any:
        """It reads pointers step by step as they are, without escapes."""
        if pointer[:2] != "#/":
            return None
        target: Any = self._root
        for step in pointer.split("/")[1:]:
            if not isinstance(target, dict):
                return None
            target = target.get(step)
        return target


def _heads(schema: Schema) -> Iterator[str]:
    """The references with which a value of ``schema`` may begin."""
    if isinstance(schema.get("$ref"), str):
        yield schema["$ref"]
        return
    for name in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(name) or ():
            if isinstance(each, dict):
                yield from _heads(each)
