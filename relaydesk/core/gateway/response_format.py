"""``response_format``: checked, and rebuilt in the shape the engine obeys."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, present
from relaydesk.core.gateway.schema.shapes import Shapes
from relaydesk.core.text import safe_text


class _JsonSchema(msgspec.Struct):
    schema: Raw = Raw()
    name: str | None = None


class _Format(msgspec.Struct):
    type: str
    json_schema: _JsonSchema | None = None
    schema: Raw = Raw()


_FORMAT: Final = decoder(_Format)


def response_format(raw: Raw) -> bytes:
    """``response_format`` as JSON for the engine; empty for plain text.

    A schema beside ``type`` instead of under ``json_schema`` is taken too, and moved to where the engine
    looks: left in place it would be ignored. Raises `PeerError` naming the field, or the keyword of a schema
    that no engine here would keep to.
    """
    data = present(raw)
    if not data:
        return b""
    given = decode(_FORMAT, data, "response_format")
    beside = present(given.schema)
    if given.type == "text":
        return b""
    if given.type == "json_object":
        if not beside:
            return b'{"type":"json_object"}'
        return json_format("schema", kept(beside, "response_format.schema"))
    if given.type != "json_schema":
        raise invalid(
            "response_format.type",
            f"response_format.type {safe_text(given.type, 40)!r} must be text, json_object or json_schema",
        )
    at = "response_format.json_schema.schema"
    inside = present(given.json_schema.schema) if given.json_schema else b""
    if not inside and not beside:
        raise invalid(at, f"{at} is missing")
    schema = kept(inside, at) if inside else kept(beside, "response_format.schema")
    return json_format((given.json_schema.name if given.json_schema else None) or "schema", schema)


def kept(schema: bytes, at: str) -> bytes:
    """A client's schema, JSON that stands at ``at``, as an engine keeps to it. Raises `PeerError`."""
    shapes = Shapes()
    return shapes.document(shapes.add(schema, at))


def json_format(name: str, schema: bytes) -> bytes:
    """The format that binds an answer to ``schema``, which engines keep to (`schema.shapes`)."""
    return b'{"type":"json_schema","json_schema":{"name":%b,"schema":%b}}' % (encode(name), schema)
