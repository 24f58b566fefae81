"""The pieces of all choices, folded into the one answer of a client that did not ask for a stream.

Text is joined as JSON, never decoded, so that it is exactly what the stream would have carried.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.chunk import Identity
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.usage import Usage


class _Function(msgspec.Struct):
    arguments: Raw
    name: str | None = None


class _Call(msgspec.Struct):
    index: int
    function: _Function
    id: str | None = None


_CALLS: Final = msgspec.json.Decoder(list[_Call])
_LOGPROBS: Final = msgspec.json.Decoder(dict[str, Raw])
_ENTRIES: Final = msgspec.json.Decoder(list[Raw])


class _Answer:
    """One choice in the making: JSON string bodies to be joined."""

    __slots__ = ("calls", "content", "finish", "logprobs", "reasoning", "refusal")

    def __init__(self) -> None:
        self.content: list[bytes] = []
        self.reasoning: list[bytes] = []
        self.refusal: list[bytes] = []
        self.calls: list[tuple[str, str, list[bytes]]] = []
        self.logprobs: dict[str, list[Raw]] | None = None
        self.finish = b"null"


class Fold:
    """Collects pieces, in order within each choice, and makes the ``chat.completion``."""

    def __init__(self, identity: Identity, choices: int = 1) -> None:
        self._identity = identity
        self._answers = [_Answer() for _ in range(choices)]

    def add(self, choice: int, piece: Piece) -> None:
        """Add one piece of one choice."""
        answer = self._answers[choice]
        if piece.content:
            answer.content.append(piece.content[1:-1])
        if piece.reasoning:
            answer.reasoning.append(piece.reasoning[1:-1])
        if piece.refusal:
            answer.refusal.append(piece.refusal[1:-1])
        if piece.calls:
            _add_calls(answer, piece.calls)
        if piece.logprobs:
            _add_logprobs(answer, piece.logprobs)
        if piece.finish:
            answer.finish = piece.finish

    def result(self, usage: Usage) -> bytes:
        """The whole answer as JSON."""
        identity = self._identity
        return b'{"id":%b,"object":"chat.completion","created":%d,"model":%b,"choices":[%b],"usage":%b}' % (
            encode(identity.id),
            identity.created,
            encode(identity.model),
            b",".join(_choice(number, answer) for number, answer in enumerate(self._answers)),
            encode(usage),
        )


def _choice(number: int, answer: _Answer) -> bytes:
    # A call without text has null content; an answer without either is empty text.
    content = b'"%b"' % b"".join(answer.content) if answer.content or not answer.calls else b"null"
    message = b'{"role":"assistant","content":' + content
    if answer.reasoning:
        message += b',"reasoning_content":"%b"' % b"".join(answer.reasoning)
    if answer.refusal:
        message += b',"refusal":"%b"' % b"".join(answer.refusal)
    if answer.calls:
        message += b',"tool_calls":' + encode([_call(*call) for call in answer.calls])
    logprobs = b"null" if answer.logprobs is None else encode(answer.logprobs)
    return b'{"index":%d,"message":%b},"logprobs":%b,"finish_reason":%b}' % (
        number,
        message,
        logprobs,
        answer.finish,
    )


def _call(call_id: str, name: str, arguments: list[bytes]) -> dict[str, Any]:
    function = {"name": name, "arguments": Raw(b'"%b"' % b"".join(arguments))}
    return {"id": call_id, "type": "function", "function": function}


def _add_calls(answer: _Answer, data: bytes) -> None:
    """Deltas come regular (`toolcalls`): an index beyond the known ones opens the next call."""
    for delta in _CALLS.decode(data):
        if delta.index == len(answer.calls):
            answer.calls.append((delta.id or "", delta.function.name or "", []))
        answer.calls[delta.index][2].append(bytes(delta.function.arguments)[1:-1])


def _add_logprobs(answer: _Answer, data: bytes) -> None:
    """Join each list of token entries (``content``, ``refusal``), entries untouched."""
    merged = answer.logprobs if answer.logprobs is not None else {}
    answer.logprobs = merged
    for name, raw in _LOGPROBS.decode(data).items():
        if bytes(raw)[:1] == b"[":
            merged.setdefault(name, []).extend(_ENTRIES.decode(raw))
