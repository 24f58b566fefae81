"""Logprobs in the shape of ``/v1/completions``: lists side by side, with each token's place in the text."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import encode

_UTF8: Final = getincrementaldecoder("utf-8")


class _Top(msgspec.Struct):
    token: str
    logprob: float | None = None


class _Entry(msgspec.Struct):
    token: str
    logprob: float | None = None
    bytes: list[int] | None = None
    top_logprobs: list[_Top] | None = None


class _Content(msgspec.Struct):
    content: list[_Entry] | None = None


_CONTENT: Final = msgspec.json.Decoder(_Content)
_ENTRIES: Final = msgspec.json.Decoder(list[_Entry])


class LegacyLogprobs:
    """Turns one choice's logprobs of a chat's shape into this route's, ``top`` alternatives a token.

    Offsets count characters of the choice's text; a token in the middle of a character stands at it.
    """

    __slots__ = ("_decoder", "_offset", "_top")

    def __init__(self, top: int) -> None:
        self._top = top
        self._offset = 0
        self._decoder = _UTF8("replace")

    def of_piece(self, logprobs: bytes) -> bytes:
        """JSON of one piece's logprobs. Raises `PeerError` ``engine_failed`` where they are none."""
        try:
            entries = _CONTENT.decode(logprobs).content or []
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise _unknown() from None
        return self._said(entries)

    def of_answer(self, logprobs: dict[str, list[Raw]]) -> bytes:
        """JSON of a whole answer's logprobs, as `answer.Answer` collected them."""
        try:
            entries = _ENTRIES.decode(b"[%b]" % b",".join(map(bytes, logprobs.get("content", ()))))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise _unknown() from None
        return self._said(entries)

    def _said(self, entries: Sequence[_Entry]) -> bytes:
        said: dict[str, Any] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for entry in entries:
            tops = {each.token: each.logprob for each in (entry.top_logprobs or ())[: self._top]}
            tops.setdefault(entry.token, entry.logprob)
            said["tokens"].append(entry.token)
            said["token_logprobs"].append(entry.logprob)
            said["top_logprobs"].append(tops)
            said["text_offset"].append(self._offset)
            self._offset += self._characters(entry)
        return encode(said)

    def _characters(self, entry: _Entry) -> int:
        """How many characters this token completes."""
        if entry.bytes is None:
            return len(entry.token)
        return len(self._decoder.decode(bytes(byte & 0xFF for byte in entry.bytes)))


def _unknown() -> PeerError:
    return PeerError("engine_failed", "the engine sent logprobs of an unknown shape")
