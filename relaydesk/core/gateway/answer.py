"""One choice's answer, folded from its pieces, for a client that did not ask for a stream.

Text is joined as JSON, never decoded, so that it is exactly what the stream would have carried.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.piece import Piece


class _Function(msgspec.Struct):
    arguments: Raw
    name: str | None = None


class _CallDelta(msgspec.Struct):
    index: int
    function: _Function
    id: str | None = None


_CALLS: Final = msgspec.json.Decoder(list[_CallDelta])
_LOGPROBS: Final = msgspec.json.Decoder(dict[str, Raw])
_ENTRIES: Final = msgspec.json.Decoder(list[Raw])


class Call:
    """A tool call. `arguments` is JSON text, itself written as a JSON string with its quotes."""

    __slots__ = ("_arguments", "id", "name")

    def __init__(self, call_id: str, name: str) -> None:
        self.id = call_id
        self.name = name
        self._arguments: list[bytes] = []

    @property
    def arguments(self) -> bytes:
        return b'"%b"' % b"".join(self._arguments)

    def extend(self, text: bytes) -> None:
        """Add a JSON string's worth of arguments."""
        self._arguments.append(text[1:-1])


class Answer:
    """Collects the pieces of one choice, in order.

    `content`, `reasoning` and `refusal` are JSON strings with their quotes, empty bytes where no piece had
    any; `finish` is the reason as a JSON string or ``null``; `logprobs` None where there were none.
    """

    __slots__ = ("_content", "_reasoning", "_refusal", "calls", "finish", "logprobs")

    def __init__(self) -> None:
        self._content: list[bytes] = []
        self._reasoning: list[bytes] = []
        self._refusal: list[bytes] = []
        self.calls: list[Call] = []
        self.logprobs: dict[str, list[Raw]] | None = None
        self.finish = b"null"

    @property
    def content(self) -> bytes:
        return _joined(self._content)

    @property
    def reasoning(self) -> bytes:
        return _joined(self._reasoning)

    @property
    def refusal(self) -> bytes:
        return _joined(self._refusal)

    def add(self, piece: Piece) -> None:
        """Add the next piece."""
        if piece.content:
            self._content.append(piece.content[1:-1])
        if piece.reasoning:
            self._reasoning.append(piece.reasoning[1:-1])
        if piece.refusal:
            self._refusal.append(piece.refusal[1:-1])
        if piece.calls:
            self._add_calls(piece.calls)
        if piece.logprobs:
            self._add_logprobs(piece.logprobs)
        if piece.finish:
            self.finish = piece.finish

    def _add_calls(self, data: bytes) -> None:
        """Deltas come regular (`toolcalls`): an index beyond the known ones opens the next call."""
        for delta in _CALLS.decode(data):
            if delta.index == len(self.calls):
                self.calls.append(Call(delta.id or "", delta.function.name or ""))
            self.calls[delta.index].extend(bytes(delta.function.arguments))

    def _add_logprobs(self, data: bytes) -> None:
        """Join each list of token entries (``content``, ``refusal``), entries untouched."""
        merged = self.logprobs if self.logprobs is not None else {}
        self.logprobs = merged
        for name, raw in _LOGPROBS.decode(data).items():
            if bytes(raw)[:1] == b"[":
                merged.setdefault(name, []).extend(_ENTRIES.decode(raw))


def _joined(parts: list[bytes]) -> bytes:
    return b'"%b"' % b"".join(parts) if parts else b""
