"""An answer that was to be JSON, held to it.

llama.cpp keeps to a format by itself. A far server may not know one and answer with prose: that is its
failure, and said, instead of passed on as if it were what was asked for.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.json_text import joined
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.surrogates import tagged
from relaydesk.core.gateway.usage import Tally
from relaydesk.core.gateway.work import Reader

_TEXT: Final = msgspec.json.Decoder(str)
_ANY: Final = msgspec.json.Decoder(Raw)
# As they begin a value inside a JSON string: a quote is escaped there.
_BEGINNINGS: Final = (b"{", b"[", b"\\", b"t", b"f", b"n", b"-", *(b"%d" % digit for digit in range(10)))


class JsonReader:
    """`Reader` of a choice whose text must be one JSON value, unless it is cut short or refused."""

    __slots__ = ("_inner", "_refused", "_texts")

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        self._texts: list[bytes] = []
        self._refused = False

    @property
    def tally(self) -> Tally:
        return self._inner.tally

    def read(self, data: bytes) -> Piece | None:
        piece = self._inner.read(data)
        if piece is not None and piece.content:
            begins = piece.content[1:-1].lstrip()
            if not self._texts and begins and not begins.startswith(_BEGINNINGS):
                raise _failed()
            self._texts.append(piece.content)
        if piece is not None:
            self._refused = self._refused or bool(piece.refusal)
            if piece.finish == b'"stop"' and not self._refused:
                self._check()
        return piece

    def end(self) -> None:
        self._inner.end()

    def _check(self) -> None:
        try:
            _ANY.decode(tagged(_TEXT.decode(joined(self._texts)).encode()))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise _failed() from None


def _failed() -> PeerError:
    return PeerError(
        "engine_failed",
        "the engine did not answer in JSON as response_format asks",
        "leave response_format out, or use another model",
    )
