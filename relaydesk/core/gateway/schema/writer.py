"""One schema document, written anew schema by schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from relaydesk.core.gateway.decode import invalid, too_deep, unsupported
from relaydesk.core.gateway.schema.exclusive import exclusive
from relaydesk.core.gateway.schema.keywords import (
    CONSTRAINTS,
    KEYWORDS,
    Schema,
    below,
    check_keywords,
    refused,
)
from relaydesk.core.gateway.schema.merge import joined
from relaydesk.core.gateway.schema.types import write_type
from relaydesk.core.gateway.schema.values import write_values

# References may nest schemas deeper than their text does.
MAX_DEPTH: Final = 96
# Each of these is held against each other.
MAX_EXCLUSIVE: Final = 64


class Writer:
    """Writes the schemas of the document ``root``, which stands at ``at``.

    ``defs`` gets what references mean, by names of ours; ``spend`` is told of every schema and may refuse it.
    """

    def __init__(self, root: Any, at: str, defs: dict[str, Schema], spend: Callable[[str], None]) -> None:
        self._root = root
        self._at = at
        self._defs = defs
        self._spend = spend
        self._names: dict[str, str] = {}
        self._depth = 0

    def schema(self, schema: object, at: str) -> Schema:
        """``schema`` in the engine's words. Raises `PeerError`."""
        self._spend(at)
        if schema is True:
            return {}
        if schema is False:
            raise unsupported(at, f"{at} is false, so that nothing fits")
        if self._depth > MAX_DEPTH:
            too_deep(at)
        self._depth += 1
        try:
            return self._object(check_keywords(schema, at), at)
        finally:
            self._depth -= 1

    def _object(self, schema: Schema, at: str) -> Schema:
        for name in ("not", "if", "$dynamicRef", "$recursiveRef"):
            if name in schema:
                raise refused(at, name)
        if "allOf" in schema or ("$ref" in schema and _constrained(schema, "$ref")):
            return self.schema(joined(self._joints(schema, at), below(at, "allOf")), at)
        if "$ref" in schema:
            return self._reference(schema["$ref"], at)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._alternatives(schema, word, at)
        if "const" in schema or "enum" in schema:
            return write_values(schema, at)
        types = _types(schema)
        if types is None:
            return {}
        shapes = [write_type(self.schema, schema, name, at) for name in types]
        return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}

    def _alternatives(self, schema: Schema, word: str, at: str) -> Schema:
        """Alternatives; what stands beside them holds for each."""
        rest = {name: value for name, value in schema.items() if name != word}
        beside = _constrained(schema, word)
        shapes: list[Schema] = []
        for number, each in enumerate(schema[word]):
            where = below(at, word, number)
            if beside:
                each = joined([*self._joints(rest, at), *self._joints(each, where)], where)
            shape = self.schema(each, where)
            shapes += shape["anyOf"] if word == "anyOf" and set(shape) == {"anyOf"} else [shape]
        if word == "oneOf":
            self._check_exclusive(shapes, below(at, word))
        return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}

    def _check_exclusive(self, shapes: list[Schema], at: str) -> None:
        if len(shapes) > MAX_EXCLUSIVE:
            raise unsupported(at, f"{at} has {len(shapes)} entries, allowed is {MAX_EXCLUSIVE}", "use anyOf")
        for number, shape in enumerate(shapes):
            if not all(exclusive(shape, other, self._defs) for other in shapes[:number]):
                raise unsupported(
                    at,
                    f"{at} has entries that do not exclude each other by type, by a constant property or by"
                    " what they require",
                    "use anyOf",
                )

    def _joints(self, schema: object, at: str) -> list[Schema]:
        """The schemas that all have to hold where ``schema`` does, none of them with ``allOf``."""
        self._spend(at)
        if schema is True:
            return []
        checked = check_keywords(schema, at)
        rest = {name: value for name, value in checked.items() if name not in ("$ref", "allOf")}
        found = [rest]
        if self._depth > MAX_DEPTH:
            too_deep(at)
        self._depth += 1
        if "$ref" in checked:
            found += self._joints(self._target(checked["$ref"], below(at, "$ref")), below(at, "$ref"))
        for number, each in enumerate(checked.get("allOf", ())):
            found += self._joints(each, below(at, "allOf", number))
        self._depth -= 1
        return found

    def _reference(self, ref: str, at: str) -> Schema:
        where = below(at, "$ref")
        name = self._names.get(ref)
        if name is None:
            target = self._target(ref, where)
            name = self._names[ref] = f"d{len(self._defs)}"
            self._defs[name] = {}  # its place, for schemas that lead back to it
            self._defs[name] = self.schema(target, where)
        return {"$ref": f"#/$defs/{name}"}

    def _target(self, ref: str, at: str) -> Any:
        """What a reference points to: a JSON pointer into the same document."""
        if ref[:1] != "#":
            raise unsupported(at, f"{at} points outside of the schema, and nothing is fetched")
        pointer = unquote(ref[1:])
        if pointer and pointer[0] != "/":
            raise unsupported(at, f"{at} is not supported: use a path like #/$defs/NAME")
        target = self._root
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and step in target:
                target = target[step]
            elif isinstance(target, list) and step.isdecimal() and len(step) < 9 and int(step) < len(target):
                target = target[int(step)]
            else:
                raise invalid(at, f"{at} points to nothing")
        return target


def _constrained(schema: Mapping[str, Any], beside: str) -> bool:
    return any(name in CONSTRAINTS for name in schema if name != beside)


def _types(schema: Schema) -> list[str] | None:
    """The types a schema names, or those its keywords speak about; None where it says nothing at all."""
    named = schema.get("type")
    if named is not None:
        return list(dict.fromkeys(named if isinstance(named, list) else [named]))
    return [name for name, words in KEYWORDS.items() if any(word in schema for word in words)] or None
