"""``system`` and ``messages`` as the messages of a chat.

Rules: turns of one role that follow each other are one message, as in the original; a tool's result is a
message of its own, where it stands; what an assistant thought goes along as its reasoning, unless it is
sealed. What only Anthropic's servers could resolve (files, addresses, server tools) is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, kind_of, present, unsupported
from relaydesk.core.gateway.entries import entries
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.json_text import joined, text_of, word_of
from relaydesk.core.gateway.messages import MAX_MESSAGES, MAX_PARTS
from relaydesk.core.text import safe_text

_ROLES: Final = frozenset({"user", "assistant", "system"})
_IMAGE: Final = re.compile(r"image/[a-z0-9.+-]{1,40}")
_NEW_LINE: Final = rb"\n"


class _Message(msgspec.Struct):
    role: Raw = Raw()
    content: Raw = Raw()


class _Block(msgspec.Struct):
    type: Raw = Raw()
    text: Raw = Raw()
    thinking: Raw = Raw()
    source: Raw = Raw()
    id: Raw = Raw()
    name: Raw = Raw()
    input: Raw = Raw()
    tool_use_id: Raw = Raw()
    content: Raw = Raw()


class _Source(msgspec.Struct):
    type: Raw = Raw()
    media_type: Raw = Raw()
    data: Raw = Raw()


_MESSAGE: Final = decoder(_Message)
_BLOCK: Final = decoder(_Block)
_SOURCE: Final = decoder(_Source)


def chat_messages(system: Raw, messages: Raw, names: FieldNames) -> bytes:
    """``messages`` of a chat as JSON. Raises `PeerError` whose ``param`` is the client's field.

    ``names`` learns which part came from which block.
    """
    data = present(messages)
    if not data:
        raise invalid("messages", "messages is missing")
    conversation = _Conversation(names)
    if given := present(system):
        conversation.turn("system", "system")
        for block, at in _blocks(given, "system"):
            conversation.part(_text_only(block, at), at)
    for number, raw in enumerate(entries(data, "messages", MAX_MESSAGES)):
        at = f"messages[{number}]"
        message = decode(_MESSAGE, raw, at)
        role = word_of(message.role, f"{at}.role")
        if role not in _ROLES:
            raise invalid(f"{at}.role", f"{at}.role {safe_text(role, 40)!r} is not a known role")
        conversation.turn(role, at)
        content = present(message.content)
        if not content:
            raise invalid(f"{at}.content", f"{at}.content is missing")
        for block, where in _blocks(content, f"{at}.content"):
            _take(block, where, role, conversation)
    return conversation.body()


class _Conversation:
    """The messages so far, and the one that is being put together."""

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        self._done: list[bytes] = []
        self._role = ""
        self._at = ""
        self._open = False
        self._parts: list[bytes] = []
        self._reasoning: list[bytes] = []
        self._calls: list[bytes] = []

    def turn(self, role: str, at: str) -> None:
        """What follows is said by ``role``."""
        if role != self._role:
            self._close()
        self._role, self._at, self._open = role, at, True

    def part(self, part: bytes, at: str) -> None:
        self._open = True
        self._names.add(f"messages[{len(self._done)}].content[{len(self._parts)}]", at)
        self._parts.append(part)

    def reasoning(self, text: bytes) -> None:
        self._reasoning.append(text)

    def call(self, call: bytes, at: str) -> None:
        ours = f"messages[{len(self._done)}].tool_calls[{len(self._calls)}]"
        self._names.add(ours, at)
        self._names.add(f"{ours}.function", at)
        self._names.add(f"{ours}.function.arguments", f"{at}.input")
        self._calls.append(call)

    def result(self, call_id: bytes, content: bytes, at: str) -> None:
        """A tool's result: what the user said before it comes before it."""
        if self._parts:
            self._close()
        self._add(b'{"role":"tool","content":%b,"tool_call_id":%b}' % (content, call_id), at)
        self._open = False

    def body(self) -> bytes:
        """Every message, as a JSON list."""
        self._close()
        return b"[" + b",".join(self._done) + b"]"

    def _close(self) -> None:
        if not self._open:
            return
        message = b'{"role":"%b","content":[%b]' % (self._role.encode(), b",".join(self._parts))
        if self._reasoning:
            message += b',"reasoning_content":' + joined(self._reasoning, _NEW_LINE)
        if self._calls:
            message += b',"tool_calls":[' + b",".join(self._calls) + b"]"
        self._add(message + b"}", self._at)
        self._open, self._parts, self._reasoning, self._calls = False, [], [], []

    def _add(self, message: bytes, at: str) -> None:
        self._names.add(f"messages[{len(self._done)}]", at)
        self._done.append(message)


def _blocks(data: bytes, at: str) -> Iterator[tuple[_Block, str]]:
    """Blocks with their names; a string is one block of text."""
    if data[:1] == b'"':
        yield _Block(type=Raw(b'"text"'), text=Raw(data)), at
        return
    if data[:1] != b"[":
        raise invalid(at, f"{at} must be a string or a list, not {kind_of(data)}")
    for number, raw in enumerate(entries(data, at, MAX_PARTS)):
        where = f"{at}[{number}]"
        yield decode(_BLOCK, raw, where), where


def _take(block: _Block, at: str, role: str, conversation: _Conversation) -> None:
    """One block of a message into the conversation."""
    kind = word_of(block.type, f"{at}.type")
    if kind == "text":
        conversation.part(_text_only(block, at), at)
    elif kind == "image" and role == "user":
        conversation.part(_image(block.source, f"{at}.source"), at)
    elif kind == "tool_result" and role == "user":
        content = present(block.content) or b'""'
        parts = [_text_only(each, where) for each, where in _blocks(content, f"{at}.content")]
        call_id = text_of(block.tool_use_id, f"{at}.tool_use_id")
        conversation.result(call_id, b"[" + b",".join(parts) + b"]", at)
    elif kind == "thinking" and role == "assistant":
        conversation.reasoning(text_of(block.thinking, f"{at}.thinking"))
    elif kind == "redacted_thinking" and role == "assistant":
        pass  # sealed: nobody here can read it
    elif kind == "tool_use" and role == "assistant":
        conversation.call(_call(block, at), at)
    else:
        raise _no_such_block(kind, at)


def _text_only(block: _Block, at: str) -> bytes:
    """A block of text as a chat's part, where nothing else can stand."""
    kind = word_of(block.type, f"{at}.type")
    if kind != "text":
        raise _no_such_block(kind, at)
    # A string that stands for one block has no field ``text``.
    where = f"{at}.text" if at.endswith("]") else at
    return b'{"type":"text","text":%b}' % text_of(block.text, where)


def _image(raw: Raw, at: str) -> bytes:
    source = decode(_SOURCE, present(raw) or b"{}", at)
    if word_of(source.type, f"{at}.type") != "base64":
        raise unsupported(at, f"{at} must hold the image itself", "send it as base64")
    media_type = word_of(source.media_type, f"{at}.media_type")
    if not _IMAGE.fullmatch(media_type):
        raise invalid(f"{at}.media_type", f"{at}.media_type must be an image's, such as image/png")
    data = text_of(source.data, f"{at}.data")
    url = b'"data:%b;base64,%b' % (media_type.encode(), data[1:])
    return b'{"type":"image_url","image_url":{"url":%b}}' % url


def _call(block: _Block, at: str) -> bytes:
    """A tool call: its input, which is an object here, is text there."""
    given = present(block.input) or b"{}"
    if given[:1] != b"{":
        raise invalid(f"{at}.input", f"{at}.input must be an object, not {kind_of(given)}")
    name = text_of(block.name, f"{at}.name")
    function = b'{"name":%b,"arguments":%b}' % (name, encode(given.decode()))
    return b'{"id":%b,"type":"function","function":%b}' % (text_of(block.id, f"{at}.id"), function)


def _no_such_block(kind: str, at: str) -> Exception:
    shown = safe_text(kind, 40)
    return unsupported(at, f"{at} is a block of type {shown!r}, which is not supported here")
