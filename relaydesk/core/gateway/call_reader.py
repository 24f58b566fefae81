"""The answer to a forced call, JSON that an engine was bound to, as the tool call it stands for.

The call is told as it comes: its name once, then its arguments as fragments of their JSON, byte for byte. An
engine that does not keep to the form has failed: its prose is never passed on for a call.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum, auto
from typing import Final

import msgspec

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.piece import Piece, says_something
from relaydesk.core.gateway.usage import Tally
from relaydesk.core.gateway.work import Reader

# Longer than any name with its escapes, and white space around.
MAX_HEAD: Final = 4096

_TEXT: Final = msgspec.json.Decoder(str)
_WHITE: Final = r"[ \t\r\n]*"
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
# Some engines let a model fence its JSON, and cut that off again unless the answer ends early.
_FENCE: Final = re.compile(rf"{_WHITE}(?:`{{0,3}}|```(?:j|js|jso|json)?{_WHITE})")
_HEAD: Final = re.compile(
    rf'{_WHITE}(?:```(?:json)?{_WHITE})?\{{{_WHITE}"name"{_WHITE}:{_WHITE}({_STRING}){_WHITE},'
    rf'{_WHITE}"arguments"{_WHITE}:{_WHITE}(?=\{{)'
)
_MARKS: Final = re.compile(r'["\\{}\[\]]')


class _At(Enum):
    HEAD = auto()
    ARGUMENTS = auto()
    DONE = auto()


class CallReader:
    """`Reader` of one choice whose answer is a call to one of ``names``. ``call_id`` is the call's."""

    __slots__ = (
        *("_at", "_depth", "_head", "_inner", "_names", "_native", "_pending", "_quoted", "_refused"),
        "call_id",
    )

    def __init__(self, inner: Reader, names: Collection[str], call_id: str) -> None:
        self.call_id = call_id
        self._inner = inner
        self._names = frozenset(names)
        self._at = _At.HEAD
        self._head = ""
        self._depth = 0
        # A quote inside a string, a backslash where the next character is escaped.
        self._quoted = ""
        self._pending = ""
        self._native = False
        self._refused = False

    @property
    def tally(self) -> Tally:
        return self._inner.tally

    def read(self, data: bytes) -> Piece | None:
        piece = self._inner.read(data)
        if piece is None:
            return None
        # An engine that reads calls out of answers by itself may have found this one.
        self._native = self._native or bool(piece.calls)
        self._refused = self._refused or bool(piece.refusal)
        if not self._native:
            text = _decoded(piece.content) if piece.content else ""
            piece.calls = encode(deltas) if (deltas := self._deltas(text, last=bool(piece.finish))) else b""
        piece.content = piece.logprobs = b""
        if piece.finish:
            self._finish(piece)
        return piece if says_something(piece) else None

    def end(self) -> None:
        self._inner.end()

    def _finish(self, piece: Piece) -> None:
        if self._native:
            return
        if self._at is _At.DONE:
            self.tally.finish_reason = "tool_calls"
            piece.finish = b'"tool_calls"'
        elif piece.finish == b'"stop"' and not self._refused:
            raise _failed("the engine ended before the call that was asked for was complete")

    def _deltas(self, text: str, *, last: bool) -> list[dict[str, object]]:
        """What ``text`` adds to the call. A fragment behind the opening waits for its turn."""
        deltas: list[dict[str, object]] = []
        arguments = self._pending
        self._pending = ""
        if self._at is _At.HEAD and text:
            self._head += text
            if (opened := self._open()) is None:
                return deltas
            name, text = opened
            function = {"name": name, "arguments": ""}
            deltas.append({"index": 0, "id": self.call_id, "type": "function", "function": function})
            self._pending = self._arguments(text)
            if not last:
                return deltas
            arguments, self._pending = self._pending, ""
        elif self._at is _At.ARGUMENTS:
            arguments += self._arguments(text)
        if arguments:
            deltas.append({"index": 0, "function": {"arguments": arguments}})
        return deltas

    def _open(self) -> tuple[str, str] | None:
        """The name, and the text behind the head, once that is there."""
        found = _HEAD.match(self._head)
        if found is None:
            if len(self._head) > MAX_HEAD or not self._may_open():
                raise _failed("the engine did not answer with the call that was asked for")
            return None
        name = _decoded(found[1].encode())
        if name not in self._names:
            raise _failed("the engine called a function that was not asked for")
        self._at = _At.ARGUMENTS
        rest = self._head[found.end() :]
        self._head = ""
        return name, rest

    def _may_open(self) -> bool:
        """Whether what is there so far can still become the head of a call."""
        brace = self._head.find("{")
        return _FENCE.fullmatch(self._head if brace < 0 else self._head[:brace]) is not None

    def _arguments(self, text: str) -> str:
        """The part of ``text`` that belongs to the arguments, which are one JSON object."""
        skip = 0
        if text and self._quoted == "\\":
            self._quoted, skip = '"', 1
        for found in _MARKS.finditer(text, skip):
            if found.start() < skip:
                continue
            mark = found[0]
            if self._quoted:
                if mark == "\\":
                    skip = found.start() + 2
                    if skip > len(text):
                        self._quoted = "\\"
                elif mark == '"':
                    self._quoted = ""
            elif mark == '"':
                self._quoted = '"'
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth == 0:
                    self._at = _At.DONE
                    return text[: found.end()]
        return text


def _decoded(data: bytes) -> str:
    try:
        return _TEXT.decode(data)
    except (msgspec.MsgspecError, ValueError):
        raise _failed("the engine sent text that is no JSON") from None


def _failed(sentence: str) -> PeerError:
    return PeerError("engine_failed", sentence, "try again, or leave tool_choice out")
