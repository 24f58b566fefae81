"""``tools``, ``tool_choice``, ``response_format``: checked, and rebuilt in the shape the engine obeys."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import (
    check_depth,
    decode,
    decoder,
    encode,
    invalid,
    kind_of,
    present,
    unsupported,
)
from relaydesk.core.text import safe_text

MAX_TOOLS: Final = 512
MAX_NAME: Final = 128
MAX_SCHEMA_BYTES: Final = 256 * 1024


class _Function(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: Raw = Raw()


class _Tool(msgspec.Struct):
    function: _Function
    type: str | None = None


class _Choice(msgspec.Struct):
    type: str


class _JsonSchema(msgspec.Struct):
    schema: Raw = Raw()
    name: str | None = None


class _Format(msgspec.Struct):
    type: str
    json_schema: _JsonSchema | None = None
    schema: Raw = Raw()


_TOOLS: Final = decoder(list[_Tool])
_CHOICE: Final = msgspec.json.Decoder(str | _Choice)
_FORMAT: Final = decoder(_Format)


def rebuild_tools(raw: Raw) -> bytes:
    """``tools`` as JSON for the engine; empty where none are offered. Raises `PeerError`."""
    data = present(raw)
    if not data:
        return b""
    tools = decode(_TOOLS, data, "tools")
    if len(tools) > MAX_TOOLS:
        raise invalid("tools", f"tools has {len(tools)} entries, allowed is {MAX_TOOLS}")
    rebuilt = []
    for number, tool in enumerate(tools):
        at = f"tools[{number}]"
        if tool.type not in (None, "function"):
            raise unsupported(f"{at}.type", f"{at}.type {safe_text(tool.type, 40)!r} is not supported")
        function = tool.function
        if not 0 < len(function.name) <= MAX_NAME:
            raise invalid(f"{at}.function.name", f"{at}.function.name must have 1 to {MAX_NAME} characters")
        entry: dict[str, object] = {"name": function.name}
        if function.description is not None:
            entry["description"] = function.description
        parameters = _schema(present(function.parameters), f"{at}.function.parameters")
        entry["parameters"] = Raw(parameters or b'{"type":"object","properties":{}}')
        rebuilt.append({"type": "function", "function": entry})
    return encode(rebuilt) if rebuilt else b""


def tool_choice(raw: Raw, *, have_tools: bool) -> str:
    """``tool_choice`` as ``auto`` or ``none``, empty where it was not given.

    A forced call is refused: the engine answers it with prose. Raises `PeerError`.
    """
    data = present(raw)
    if not data:
        return ""
    choice = decode(_CHOICE, data, "tool_choice")
    if isinstance(choice, str) and choice in ("auto", "none"):
        return choice
    if choice == "required" or (isinstance(choice, _Choice) and choice.type == "function"):
        if not have_tools:
            raise invalid("tool_choice", "tool_choice asks for a call, but tools is empty")
        raise unsupported(
            "tool_choice", "a forced tool call is not supported", "use tool_choice auto or none"
        )
    shown = safe_text(choice if isinstance(choice, str) else choice.type, 40)
    raise unsupported("tool_choice", f"tool_choice {shown!r} is not supported", "use auto or none")


def response_format(raw: Raw) -> bytes:
    """``response_format`` as JSON for the engine; empty for plain text. Raises `PeerError`.

    A schema beside ``type`` instead of under ``json_schema`` is taken too, and moved to where the engine
    looks: left in place it would be ignored.
    """
    data = present(raw)
    if not data:
        return b""
    given = decode(_FORMAT, data, "response_format")
    beside = _schema(present(given.schema), "response_format.schema")
    if given.type == "text":
        return b""
    if given.type == "json_object":
        return b'{"type":"json_object"%b}' % (b',"schema":' + beside if beside else b"")
    if given.type != "json_schema":
        raise invalid(
            "response_format.type",
            f"response_format.type {safe_text(given.type, 40)!r} must be text, json_object or json_schema",
        )
    param = "response_format.json_schema.schema"
    inside = present(given.json_schema.schema) if given.json_schema else b""
    schema = _schema(inside, param) or beside
    if not schema:
        raise invalid(param, f"{param} is missing")
    name = encode((given.json_schema.name if given.json_schema else None) or "schema")
    return b'{"type":"json_schema","json_schema":{"name":%b,"schema":%b}}' % (name, schema)


def _schema(data: bytes, at: str) -> bytes:
    if not data:
        return b""
    if data[:1] != b"{":
        raise invalid(at, f"{at} must be an object, not {kind_of(data)}")
    if len(data) > MAX_SCHEMA_BYTES:
        raise invalid(at, f"{at} has {len(data)} bytes, allowed is {MAX_SCHEMA_BYTES}")
    check_depth(data, at)
    return data
