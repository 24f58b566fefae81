"""An answer as clients of OpenAI's ``chat/completions`` read it: chunks of a stream, or one object.

Per choice: one opening delta with the role, the engine's text, logprobs and finish reason untouched, every
other key ours. Over all choices: the same id, created and model; usage in one last chunk, and only where it
was asked for. A front never sees the engine's id, model path, timings or progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.answer import Answer, Call
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.errors import error_frame
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.sse import DONE, HEARTBEAT, data_frame
from relaydesk.core.gateway.usage import Usage

_DONE: Final = data_frame(DONE)
_NOTHING: Final = b"{}"


class ChatOutput:
    """`Output` of one chat completion."""

    __slots__ = ("_head", "_heads", "_identity", "_include_usage", "_opened")

    media_type: Final = "text/event-stream"
    heartbeat: Final = HEARTBEAT

    def __init__(self, identity: Identity, *, choices: int = 1, include_usage: bool = False) -> None:
        self._identity = identity
        self._include_usage = include_usage
        self._head = b'{"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":[' % (
            _id(identity),
            identity.created,
            encode(identity.model),
        )
        self._heads = [self._head + b'{"index":%d,"delta":' % number for number in range(choices)]
        self._opened = [False] * choices

    def piece(self, choice: int, piece: Piece) -> bytes:
        head = self._heads[choice]
        delta = _delta(piece)
        if piece.finish and delta != _NOTHING:
            # Clients look for the reason beside an empty delta.
            frame = _frame(head, delta, piece.logprobs, b"null") + _frame(head, _NOTHING, b"", piece.finish)
        else:
            frame = _frame(head, delta, piece.logprobs, piece.finish or b"null")
        if self._opened[choice]:
            return frame
        self._opened[choice] = True
        return data_frame(head + b'{"role":"assistant","content":""},"finish_reason":null}]}') + frame

    def close(self, usage: Usage, spent: Spent) -> bytes:
        """``[DONE]``; before it, where asked for, the usage: no choices then, but the key must be there."""
        if not self._include_usage:
            return _DONE
        return data_frame(self._head + b'],"usage":' + encode(usage) + b"}") + _DONE

    def error(self, fault: Fault) -> bytes:
        return error_frame(fault)

    def whole(self, answers: Sequence[Answer], usage: Usage, spent: Spent) -> bytes:
        identity = self._identity
        return b'{"id":%b,"object":"chat.completion","created":%d,"model":%b,"choices":[%b],"usage":%b}' % (
            _id(identity),
            identity.created,
            encode(identity.model),
            b",".join(_choice(number, answer) for number, answer in enumerate(answers)),
            encode(usage),
        )


def _id(identity: Identity) -> bytes:
    return b'"chatcmpl-%b"' % identity.token.encode()


def _frame(head: bytes, delta: bytes, logprobs: bytes, finish: bytes) -> bytes:
    beside = b',"logprobs":' + logprobs if logprobs else b""
    return data_frame(head + delta + beside + b',"finish_reason":' + finish + b"}]}")


def _delta(piece: Piece) -> bytes:
    if piece.content and not (piece.reasoning or piece.refusal or piece.calls):
        return b'{"content":' + piece.content + b"}"
    fields = [
        name + value
        for name, value in (
            (b'"content":', piece.content),
            (b'"reasoning_content":', piece.reasoning),
            (b'"refusal":', piece.refusal),
            (b'"tool_calls":', piece.calls),
        )
        if value
    ]
    return b"{" + b",".join(fields) + b"}"


def _choice(number: int, answer: Answer) -> bytes:
    # A call without text has null content; an answer without either is empty text.
    message = b'{"role":"assistant","content":' + (answer.content or (b"null" if answer.calls else b'""'))
    if answer.reasoning:
        message += b',"reasoning_content":' + answer.reasoning
    if answer.refusal:
        message += b',"refusal":' + answer.refusal
    if answer.calls:
        message += b',"tool_calls":' + encode([_call(call) for call in answer.calls])
    logprobs = b"null" if answer.logprobs is None else encode(answer.logprobs)
    return b'{"index":%d,"message":%b},"logprobs":%b,"finish_reason":%b}' % (
        number,
        message,
        logprobs,
        answer.finish,
    )


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": Raw(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
