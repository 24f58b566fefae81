"""``tools`` and ``tool_choice`` as a chat has them.

Only tools with a schema of their own can be offered: those that are known by their type run on Anthropic's
servers or mean what only Anthropic's models were taught.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, present, unsupported
from relaydesk.core.gateway.entries import entries
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.json_text import text_of, word_of
from relaydesk.core.gateway.tools import MAX_TOOLS
from relaydesk.core.text import safe_text

_CHOICES: Final = {"auto": b'"auto"', "any": b'"required"', "none": b'"none"'}


class _Tool(msgspec.Struct):
    type: str | None = None
    name: Raw = Raw()
    description: Raw = Raw()
    input_schema: Raw = Raw()


class _Choice(msgspec.Struct):
    type: str
    name: Raw = Raw()
    disable_parallel_tool_use: bool | None = None


_TOOL: Final = decoder(_Tool)
_CHOICE: Final = decoder(_Choice)


def chat_tools(raw: Raw, names: FieldNames) -> bytes:
    """``tools`` of a chat as JSON, empty where none are offered. Raises `PeerError`."""
    data = present(raw)
    if not data:
        return b""
    tools = []
    for number, each in enumerate(entries(data, "tools", MAX_TOOLS)):
        at = f"tools[{number}]"
        tool = decode(_TOOL, each, at)
        if tool.type not in (None, "custom"):
            shown = safe_text(tool.type, 40)
            raise unsupported(
                f"{at}.type", f"{at}.type {shown!r} is not supported", "use tools with an input_schema"
            )
        schema = present(tool.input_schema)
        if not schema:
            raise invalid(f"{at}.input_schema", f"{at}.input_schema is missing")
        function = b'"name":' + text_of(tool.name, f"{at}.name")
        if present(tool.description):
            function += b',"description":' + text_of(tool.description, f"{at}.description")
        tools.append(b'{"type":"function","function":{%b,"parameters":%b}}' % (function, schema))
        names.add(f"{at}.function", at)
        names.add(f"{at}.function.parameters", f"{at}.input_schema")
    return b"[" + b",".join(tools) + b"]"


def chat_choice(raw: Raw) -> tuple[bytes, bytes]:
    """``tool_choice`` and ``parallel_tool_calls`` of a chat, empty where not given. Raises `PeerError`."""
    data = present(raw)
    if not data:
        return b"", b""
    given = decode(_CHOICE, data, "tool_choice")
    if given.type == "tool":
        name = word_of(given.name, "tool_choice.name")
        choice = encode({"type": "function", "function": {"name": name}})
    elif given.type in _CHOICES:
        choice = _CHOICES[given.type]
    else:
        shown = safe_text(given.type, 40)
        raise unsupported(
            "tool_choice.type", f"tool_choice.type {shown!r} is not supported", "use auto, any, tool or none"
        )
    return choice, b"false" if given.disable_parallel_tool_use else b""
