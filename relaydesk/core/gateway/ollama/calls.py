"""Tool calls of an answer as Ollama's clients read them: whole, with their arguments as an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.answer import Call
from relaydesk.core.gateway.call_deltas import CallSequence
from relaydesk.core.gateway.decode import decoder, encode
from relaydesk.core.gateway.piece import Piece

_TEXT: Final = decoder(str)
_ANY: Final = decoder(Raw)
_LENGTH: Final = b'"length"'


class Calls:
    """Gathers the deltas of one answer's calls and gives each out once it is complete."""

    __slots__ = ("_open", "_said", "_sequence")

    def __init__(self) -> None:
        self._sequence = CallSequence()
        self._open: Call | None = None
        self._said = 0

    def take(self, piece: Piece) -> bytes:
        """The calls that ``piece`` completes, as a JSON list; empty where it completes none.

        A call is complete once the next one begins, or the answer ends. Raises `PeerError`
        ``engine_failed``.
        """
        ended: list[Call] = []
        for delta in self._sequence.read(piece.calls) if piece.calls else ():
            if delta.name is not None:
                self._end(ended)
                self._open = Call(delta.id, delta.name)
            if self._open is not None:
                self._open.extend(delta.arguments)
        if piece.finish:
            self._end(ended)
        if not ended:
            return b""
        begin = self._said
        self._said += len(ended)
        return said(ended, begin, piece.finish)

    def _end(self, ended: list[Call]) -> None:
        if self._open is not None:
            ended.append(self._open)
            self._open = None


def said(calls: Sequence[Call], begin: int, finish: bytes) -> bytes:
    """``calls``, of which the first is number ``begin``, as a JSON list; empty where none is left.

    An answer that met its limit may end inside a call: that one is left out. Raises `PeerError`
    ``engine_failed`` for arguments that are no object.
    """
    out = []
    for number, call in enumerate(calls):
        arguments = _object(call.arguments)
        if arguments is None:
            if finish == _LENGTH and number == len(calls) - 1:
                continue
            raise PeerError(
                "engine_failed",
                "the model wrote a tool call whose arguments are no JSON object",
                "send the request again",
            )
        function = {"index": begin + number, "name": call.name, "arguments": Raw(arguments)}
        out.append({"id": call.id, "function": function})
    return encode(out) if out else b""


def _object(text: bytes) -> bytes | None:
    """The object written into the JSON string ``text``, on one line; None where there is none."""
    try:
        inner = _TEXT.decode(text).strip().encode() or b"{}"
        _ANY.decode(inner)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    # Outside of strings, where alone a bare line feed can stand, it is as good as a space.
    return inner.replace(b"\n", b" ").replace(b"\r", b" ") if inner[:1] == b"{" else None
