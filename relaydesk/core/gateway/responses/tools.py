"""``tools``, ``tool_choice`` and ``text`` as a chat has them.

A function stands flat here, inside ``function`` there. Built-in tools run on OpenAI's servers and are
refused by name. ``allowed_tools`` leaves the other tools out.
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

DEFAULT_CHOICE: Final = b'"auto"'
PLAIN_TEXT: Final = b'{"type":"text"}'


class _Tool(msgspec.Struct):
    type: Raw = Raw()
    name: Raw = Raw()
    description: Raw = Raw()
    parameters: Raw = Raw()
    strict: bool | None = None


class _Choice(msgspec.Struct):
    type: Raw = Raw()
    name: Raw = Raw()
    mode: Raw = Raw()
    tools: Raw = Raw()


class _Text(msgspec.Struct):
    format: Raw = Raw()
    verbosity: str | None = None


class _Format(msgspec.Struct):
    type: str
    name: Raw = Raw()
    schema: Raw = Raw()


_TOOL: Final = decoder(_Tool)
_CHOICE: Final = decoder(_Choice)
_TEXT: Final = decoder(_Text)
_FORMAT: Final = decoder(_Format)


class Tools(msgspec.Struct, frozen=True):
    """JSON each: ``chat`` and ``choice`` for a chat, empty where not given; the others as the client is
    told about them.
    """

    chat: bytes = b""
    choice: bytes = b""
    echo: bytes = b"[]"
    choice_echo: bytes = DEFAULT_CHOICE


def chat_tools(tools: Raw, tool_choice: Raw, names: FieldNames) -> Tools:
    """Check both fields. Raises `PeerError` whose ``param`` is the client's field."""
    given: list[tuple[int, str, bytes]] = []
    echoes: list[bytes] = []
    data = present(tools)
    for number, raw in enumerate(entries(data, "tools", MAX_TOOLS) if data else ()):
        at = f"tools[{number}]"
        tool = decode(_TOOL, raw, at)
        fields = _function(tool, at)
        given.append((number, word_of(tool.name, f"{at}.name"), b"{" + fields + b"}"))
        echoes.append(b'{"type":"function",%b,"strict":%b}' % (fields, encode(tool.strict)))
    echo = b"[" + b",".join(echoes) + b"]"
    choice, allowed = _choice(tool_choice)
    if allowed is not None:
        if unknown := allowed - {name for _, name, _ in given}:
            shown = safe_text(min(unknown), 40)
            raise invalid("tool_choice.tools", f"tool_choice.tools names {shown!r}, which is not in tools")
        given = [tool for tool in given if tool[1] in allowed]
    for ours, (theirs, _, _) in enumerate(given):
        names.add(f"tools[{ours}]", f"tools[{theirs}]")
        names.add(f"tools[{ours}].function", f"tools[{theirs}]")
    chat = b",".join(b'{"type":"function","function":%b}' % function for _, _, function in given)
    return Tools(
        chat=b"[" + chat + b"]" if chat else b"",
        choice=choice,
        echo=echo,
        choice_echo=present(tool_choice) or DEFAULT_CHOICE,
    )


def chat_format(text: Raw, names: FieldNames) -> tuple[bytes, bytes]:
    """``response_format`` of a chat, empty for plain text, and ``text.format`` as it is told back."""
    given = decode(_TEXT, present(text) or b"{}", "text")
    if given.verbosity not in (None, "medium"):
        raise unsupported(
            "text.verbosity", "text.verbosity is not supported", "say in the instructions how long to be"
        )
    data = present(given.format)
    if not data:
        return b"", PLAIN_TEXT
    found = decode(_FORMAT, data, "text.format")
    names.add("response_format", "text.format")
    names.add("response_format.json_schema", "text.format")
    if found.type != "json_schema":
        return data, data
    fields = [
        b'"%b":%b' % (name, value)
        for name, value in ((b"name", present(found.name)), (b"schema", present(found.schema)))
        if value
    ]
    return b'{"type":"json_schema","json_schema":{%b}}' % b",".join(fields), data


def _function(tool: _Tool, at: str) -> bytes:
    """The fields of a function, as they stand in both forms."""
    kind = word_of(tool.type, f"{at}.type")
    if kind != "function":
        shown = safe_text(kind, 40)
        raise unsupported(f"{at}.type", f"{at}.type {shown!r} is not supported", "use function tools")
    fields = b'"name":' + text_of(tool.name, f"{at}.name")
    if present(tool.description):
        fields += b',"description":' + text_of(tool.description, f"{at}.description")
    if parameters := present(tool.parameters):
        fields += b',"parameters":' + parameters
    return fields


def _choice(tool_choice: Raw) -> tuple[bytes, set[str] | None]:
    """``tool_choice`` of a chat, and the names of the tools that are left, None for all."""
    data = present(tool_choice)
    if data[:1] != b"{":
        return data, None
    choice = decode(_CHOICE, data, "tool_choice")
    kind = word_of(choice.type, "tool_choice.type")
    if kind == "function":
        name = word_of(choice.name, "tool_choice.name")
        return encode({"type": "function", "function": {"name": name}}), None
    if kind != "allowed_tools":
        shown = safe_text(kind, 40)
        raise unsupported("tool_choice", f"tool_choice of type {shown!r} is not supported", "use auto")
    mode = word_of(choice.mode, "tool_choice.mode")
    if mode not in ("auto", "required"):
        raise invalid("tool_choice.mode", "tool_choice.mode must be auto or required")
    return encode(mode), _allowed(present(choice.tools))


def _allowed(data: bytes) -> set[str]:
    found = set()
    for number, raw in enumerate(entries(data or b"[]", "tool_choice.tools", MAX_TOOLS)):
        at = f"tool_choice.tools[{number}]"
        tool = decode(_TOOL, raw, at)
        if word_of(tool.type, f"{at}.type") != "function":
            raise unsupported(f"{at}.type", f"{at}.type must be 'function'")
        found.add(word_of(tool.name, f"{at}.name"))
    return found
