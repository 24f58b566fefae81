"""A client's schemas as one that an engine keeps to, keyword for keyword.

llama.cpp makes a grammar of a schema and passes over in silence what it cannot express; some schemas hang it.
So a schema is not passed on but written anew, in the words that it is known to obey, and what cannot be said
in them is refused by name. What comes out is never wider than what was asked: it may be narrower where the
engine is (objects have no undescribed properties unless ``additionalProperties`` says so, tuples are
complete, properties come in the order in which they are described).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import check_depth, decode, decoder, encode, invalid, kind_of, unsupported
from relaydesk.core.gateway.schema.keywords import Schema
from relaydesk.core.gateway.schema.writer import Writer

MAX_SCHEMA_BYTES: Final = 256 * 1024
# Schemas written in all. Joining can make many out of few.
MAX_SCHEMAS: Final = 10_000
# Ways to go on at one point: each costs the engine time at every token (800 values: 2.6 s for 8 tokens).
MAX_ALTERNATIVES: Final = 500

_SCHEMA: Final = decoder(Any)


class Shapes:
    """The schemas of one engine request, which share their definitions."""

    def __init__(self) -> None:
        self._defs: dict[str, Schema] = {}
        self._left = MAX_SCHEMAS
        self._bytes = 0

    @property
    def defs(self) -> dict[str, Schema]:
        """What references mean, by name."""
        return self._defs

    def add(self, data: bytes, at: str) -> Schema:
        """Read a client's schema, JSON that stands at ``at``, and write it anew.

        Raises `PeerError` whose ``param`` is the keyword: ``invalid_request`` where it is no schema or allows
        nothing, ``unsupported`` where no engine here would keep to it.
        """
        self._bytes += len(data)
        if self._bytes > MAX_SCHEMA_BYTES:
            raise invalid(at, f"{at} makes {self._bytes} bytes of schemas, allowed is {MAX_SCHEMA_BYTES}")
        root = read_schema(data, at)
        shape = Writer(root, at, self._defs, self._spend).schema(root, at)
        self._check_refs(at)
        if (most := max(map(self._widest, (shape, *self._defs.values())))) > MAX_ALTERNATIVES:
            raise unsupported(
                at,
                f"{at} leaves {most} alternatives at one point, allowed is {MAX_ALTERNATIVES}",
                "use a plain string in place of a long enum",
            )
        return shape

    def document(self, root: Schema) -> bytes:
        """``root``, which may use what `add` returned, with its definitions."""
        return encode({**root, "$defs": self._defs} if self._defs else root)

    def _spend(self, at: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise unsupported(at, f"{at} comes to more than {MAX_SCHEMAS} schemas")

    def _check_refs(self, at: str) -> None:
        """Refuse references that lead back to themselves without a value in between: no grammar has those."""
        heads = {name: set(_heads(shape)) for name, shape in self._defs.items()}
        done: set[str] = set()
        for name in heads:
            path: list[str] = []
            self._walk(name, heads, done, path, at)

    def _walk(self, name: str, heads: dict[str, set[str]], done: set[str], path: list[str], at: str) -> None:
        if name in path:
            raise invalid(at, f"{at} has a $ref that leads back to itself")
        if name in done:
            return
        path.append(name)
        for following in heads[name]:
            self._walk(following, heads, done, path, at)
        path.pop()
        done.add(name)

    def _widest(self, shape: Schema) -> int:
        """The most alternatives at one point of ``shape``, definitions apart."""
        most = self._width(shape)
        optional = len(shape.get("properties", ())) - len(shape.get("required", ()))
        most = max(most, optional)
        for below in _parts(shape):
            most = max(most, self._widest(below))
        return most

    def _width(self, shape: Schema) -> int:
        if "enum" in shape:
            return len(shape["enum"])
        if "anyOf" in shape:
            return sum(map(self._width, shape["anyOf"]))
        if "$ref" in shape:
            return self._width(self._defs[shape["$ref"].rpartition("/")[2]])
        return 1


def read_schema(data: bytes, at: str) -> Any:
    """A schema's JSON, decoded. Raises `PeerError`."""
    if data[:1] != b"{":
        raise invalid(at, f"{at} must be an object, not {kind_of(data)}")
    if len(data) > MAX_SCHEMA_BYTES:
        raise invalid(at, f"{at} has {len(data)} bytes, allowed is {MAX_SCHEMA_BYTES}")
    check_depth(data, at)
    try:
        return decode(_SCHEMA, data, at)
    except PeerError as error:
        # What is no JSON at all was refused with the body; this is a number beyond all bounds.
        raise invalid(at, f"{at} cannot be read: {error.fault.message}") from None


def _parts(shape: Schema) -> Iterator[Schema]:
    yield from shape.get("properties", {}).values()
    yield from shape.get("anyOf", ())
    yield from shape.get("prefixItems", ())
    for name in ("items", "additionalProperties"):
        if isinstance(shape.get(name), dict):
            yield shape[name]


def _heads(shape: Schema) -> Iterator[str]:
    """The definitions with which a value of ``shape`` may begin."""
    if "$ref" in shape:
        yield shape["$ref"].rpartition("/")[2]
    for each in shape.get("anyOf", ()):
        yield from _heads(each)
