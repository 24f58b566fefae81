"""``input`` as the messages of a chat.

Rules: a call, and the text and reasoning before it, are one assistant message; text behind a call opens the
next. A reasoning item gives the text it carries; one that carries none that can be read is left out. What
only OpenAI's servers could resolve (references, built-in tools, files) is refused by name.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, invalid, present, require_string, unsupported
from relaydesk.core.gateway.entries import entries
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.json_text import joined, text_of, word_of
from relaydesk.core.gateway.messages import MAX_MESSAGES, MAX_PARTS
from relaydesk.core.text import safe_text

_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_EMPTY: Final = b'""'
_NEW_LINE: Final = rb"\n"


class _Item(msgspec.Struct):
    type: Raw = Raw()
    role: Raw = Raw()
    content: Raw = Raw()
    summary: Raw = Raw()
    call_id: Raw = Raw()
    name: Raw = Raw()
    arguments: Raw = Raw()
    output: Raw = Raw()


class _Part(msgspec.Struct):
    type: Raw = Raw()
    text: Raw = Raw()
    refusal: Raw = Raw()
    image_url: Raw = Raw()


_ITEM: Final = decoder(_Item)
_PART: Final = decoder(_Part)


def chat_messages(input_: Raw, instructions: Raw, names: FieldNames) -> bytes:
    """``messages`` of a chat as JSON. Raises `PeerError` whose ``param`` is the client's field.

    ``names`` learns which message came from which item.
    """
    data = present(input_)
    if not data:
        raise invalid("input", "input is missing")
    conversation = _Conversation(names)
    if given := present(instructions):
        require_string(given, "instructions")
        conversation.message(b"system", given, "instructions", "instructions")
    if data[:1] == b'"':
        conversation.message(b"user", data, "input", "input")
    else:
        for number, raw in enumerate(entries(data, "input", MAX_MESSAGES)):
            at = f"input[{number}]"
            _take(decode(_ITEM, raw, at), at, conversation)
    return conversation.body()


class _Conversation:
    """The messages so far; the assistant's last one stays open for what may still belong to it."""

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        self._done: list[bytes] = []
        self._at = ""
        self._reasoning: list[bytes] = []
        self._content = b""
        self._calls: list[bytes] = []

    def message(self, role: bytes, content: bytes, at: str, content_at: str, more: bytes = b"") -> None:
        """A message that stands for itself. ``content_at`` is what the client calls its content."""
        self._close()
        self._names.add(f"messages[{len(self._done)}].content", content_at)
        self._add(b'{"role":"%b","content":%b%b}' % (role, content, more), at)

    def text(self, content: bytes, at: str) -> None:
        """Text of the assistant."""
        if self._content or self._calls:
            self._close()
        self._at = self._at or at
        self._content = content
        self._names.add(f"messages[{len(self._done)}].content", f"{at}.content")

    def reasoning(self, text: bytes, at: str) -> None:
        """What the assistant thought before it went on."""
        if self._content or self._calls:
            self._close()
        self._at = self._at or at
        self._reasoning.append(text)

    def call(self, call: bytes, at: str) -> None:
        """A tool call of the assistant."""
        self._at = self._at or at
        ours = f"messages[{len(self._done)}].tool_calls[{len(self._calls)}]"
        self._names.add(ours, at)
        self._names.add(f"{ours}.function", at)
        self._calls.append(call)

    def body(self) -> bytes:
        """Every message, as a JSON list."""
        self._close()
        return b"[" + b",".join(self._done) + b"]"

    def _close(self) -> None:
        if not self._at:
            return
        message = b'{"role":"assistant","content":' + (self._content or _EMPTY)
        if self._reasoning:
            message += b',"reasoning_content":' + joined(self._reasoning, _NEW_LINE)
        if self._calls:
            message += b',"tool_calls":[' + b",".join(self._calls) + b"]"
        self._add(message + b"}", self._at)
        self._at, self._reasoning, self._content, self._calls = "", [], b"", []

    def _add(self, message: bytes, at: str) -> None:
        self._names.add(f"messages[{len(self._done)}]", at)
        self._done.append(message)


def _take(item: _Item, at: str, conversation: _Conversation) -> None:
    """One item into the conversation."""
    kind = word_of(item.type, f"{at}.type") if present(item.type) else "message"
    if kind == "message":
        role = word_of(item.role, f"{at}.role")
        if role not in _ROLES:
            raise invalid(f"{at}.role", f"{at}.role {safe_text(role, 40)!r} is not a known role")
        content = _content(item.content, f"{at}.content", images=role == "user")
        if role == "assistant":
            conversation.text(content, at)
        else:
            conversation.message(role.encode(), content, at, f"{at}.content")
    elif kind == "reasoning":
        if text := _readable(item, at):
            conversation.reasoning(text, at)
    elif kind == "function_call":
        function = b'"name":%b,"arguments":%b' % (
            text_of(item.name, f"{at}.name"),
            text_of(item.arguments, f"{at}.arguments"),
        )
        call_id = text_of(item.call_id, f"{at}.call_id")
        conversation.call(b'{"id":%b,"type":"function","function":{%b}}' % (call_id, function), at)
    elif kind == "function_call_output":
        call_id = text_of(item.call_id, f"{at}.call_id")
        output = _content(item.output, f"{at}.output", images=False)
        conversation.message(b"tool", output, at, f"{at}.output", b',"tool_call_id":' + call_id)
    elif kind == "item_reference":
        raise unsupported(at, f"{at} refers to an item, and no items are kept here", "send the item itself")
    else:
        shown = safe_text(kind, 40)
        raise unsupported(f"{at}.type", f"{at}.type {shown!r} is not supported", "use function tools")


def _content(raw: Raw, at: str, *, images: bool) -> bytes:
    """A message's content, or a call's output, as a chat has it: each part stays one part."""
    data = present(raw)
    if not data:
        raise invalid(at, f"{at} is missing")
    if data[:1] == b'"':
        return data
    parts = [
        _part(decode(_PART, part, f"{at}[{number}]"), f"{at}[{number}]", images=images)
        for number, part in enumerate(entries(data, at, MAX_PARTS))
    ]
    return b"[" + b",".join(parts) + b"]"


def _part(part: _Part, at: str, *, images: bool) -> bytes:
    kind = word_of(part.type, f"{at}.type")
    if kind in ("input_text", "output_text", "text"):
        return b'{"type":"text","text":%b}' % text_of(part.text, f"{at}.text")
    if kind == "refusal":
        return b'{"type":"text","text":%b}' % text_of(part.refusal, f"{at}.refusal")
    if kind == "input_image" and images:
        if not present(part.image_url):
            raise unsupported(at, f"{at} is an image that only its owner has", "send it in image_url")
        return b'{"type":"image_url","image_url":%b}' % text_of(part.image_url, f"{at}.image_url")
    shown = safe_text(kind, 40)
    raise unsupported(at, f"{at} is a part of type {shown!r}, which is not supported here")


def _readable(item: _Item, at: str) -> bytes:
    """The text of a reasoning item; empty where it is sealed or has none."""
    for field, raw in (("content", item.content), ("summary", item.summary)):
        if data := present(raw):
            where = f"{at}.{field}"
            parts = entries(data, where, MAX_PARTS)
            texts = [
                text_of(decode(_PART, part, f"{where}[{number}]").text, f"{where}[{number}].text")
                for number, part in enumerate(parts)
            ]
            if texts:
                return joined(texts, _NEW_LINE)
    return b""
