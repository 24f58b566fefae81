"""The items of an answer, as they are when done and as the events by which they grow."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.json_text import joined

_EMPTY: Final = b'""'


class Event(NamedTuple):
    """A typed event: its type, and its members as JSON without braces."""

    type: bytes
    members: bytes


class OutItem(Protocol):
    """One item. `open` once, `add` for each further text, `close` once; `json` is it with what it has."""

    def open(self) -> list[Event]: ...
    def add(self, text: bytes, logprobs: bytes = b"") -> list[Event]:
        """``text`` is a JSON string; ``logprobs`` the entries of a JSON list, without its brackets."""
        ...

    def close(self, status: bytes) -> list[Event]: ...
    def json(self, status: bytes) -> bytes: ...


class TextKind(NamedTuple):
    """What tells an item with one part of text from another.

    ``item`` is its members between id and status, ``part`` the members of its part before the text,
    ``field`` the text's name, ``event`` the beginning of its events' types.
    """

    prefix: bytes
    item: bytes
    part: bytes
    field: bytes
    event: bytes
    logprobs: bool = False


MESSAGE: Final = TextKind(
    b"msg",
    b'"type":"message","role":"assistant"',
    b'"type":"output_text","annotations":[]',
    b"text",
    b"response.output_text",
    logprobs=True,
)
REFUSAL: Final = TextKind(
    b"msg", b'"type":"message","role":"assistant"', b'"type":"refusal"', b"refusal", b"response.refusal"
)
REASONING: Final = TextKind(
    b"rs",
    b'"type":"reasoning","summary":[]',
    b'"type":"reasoning_text"',
    b"text",
    b"response.reasoning_text",
)


class TextItem:
    """A message or a piece of reasoning: an item with one part of text."""

    def __init__(self, kind: TextKind, token: str, index: int) -> None:
        self.kind = kind
        self._id = _id(kind.prefix, token, index)
        self._where = b'"item_id":%b,"output_index":%d,"content_index":0' % (self._id, index)
        self._index = index
        self._texts: list[bytes] = []
        self._logprobs: list[bytes] = []

    def open(self) -> list[Event]:
        item = self._item(b"in_progress", b"")
        part = b'%b,"part":%b' % (self._where, self._part())
        return [_item_event(b"added", self._index, item), Event(b"response.content_part.added", part)]

    def add(self, text: bytes, logprobs: bytes = b"") -> list[Event]:
        self.take(text, logprobs)
        members = b'%b,"delta":%b' % (self._where, text)
        if self.kind.logprobs:
            members += b',"logprobs":[%b]' % logprobs
        return [Event(self.kind.event + b".delta", members)]

    def take(self, text: bytes, logprobs: bytes = b"") -> None:
        """Add without events."""
        self._texts.append(text)
        if logprobs:
            self._logprobs.append(logprobs)

    def close(self, status: bytes) -> list[Event]:
        part = self._part()
        done = b'%b,"%b":%b' % (self._where, self.kind.field, self._text())
        if self.kind.logprobs:
            done += b',"logprobs":[%b]' % b",".join(self._logprobs)
        return [
            Event(self.kind.event + b".done", done),
            Event(b"response.content_part.done", b'%b,"part":%b' % (self._where, part)),
            _item_event(b"done", self._index, self._item(status, part)),
        ]

    def json(self, status: bytes) -> bytes:
        return self._item(status, self._part())

    def _text(self) -> bytes:
        return joined(self._texts) if self._texts else _EMPTY

    def _part(self) -> bytes:
        part = b'{%b,"%b":%b' % (self.kind.part, self.kind.field, self._text())
        if self.kind.logprobs:
            part += b',"logprobs":[%b]' % b",".join(self._logprobs)
        return part + b"}"

    def _item(self, status: bytes, part: bytes) -> bytes:
        return b'{"id":%b,%b,"status":"%b","content":[%b]}' % (self._id, self.kind.item, status, part)


class CallItem:
    """A tool call. Its texts are pieces of the arguments."""

    def __init__(self, token: str, index: int, call_id: str, name: str) -> None:
        self._id = _id(b"fc", token, index)
        self._where = b'"item_id":%b,"output_index":%d' % (self._id, index)
        self._index = index
        self._head = b'"type":"function_call","call_id":%b,"name":%b' % (encode(call_id), encode(name))
        self._texts: list[bytes] = []

    def open(self) -> list[Event]:
        return [_item_event(b"added", self._index, self.json(b"in_progress"))]

    def add(self, text: bytes, logprobs: bytes = b"") -> list[Event]:
        if text == _EMPTY:
            return []
        self._texts.append(text)
        return [Event(b"response.function_call_arguments.delta", b'%b,"delta":%b' % (self._where, text))]

    def close(self, status: bytes) -> list[Event]:
        done = b'%b,"arguments":%b' % (self._where, self._arguments())
        return [
            Event(b"response.function_call_arguments.done", done),
            _item_event(b"done", self._index, self.json(status)),
        ]

    def json(self, status: bytes) -> bytes:
        return b'{"id":%b,%b,"arguments":%b,"status":"%b"}' % (
            self._id,
            self._head,
            self._arguments(),
            status,
        )

    def _arguments(self) -> bytes:
        return joined(self._texts) if self._texts else _EMPTY


def _id(prefix: bytes, token: str, index: int) -> bytes:
    return b'"%b_%b%02d"' % (prefix, token.encode(), index)


def _item_event(what: bytes, index: int, item: bytes) -> Event:
    return Event(b"response.output_item." + what, b'"output_index":%d,"item":%b' % (index, item))
