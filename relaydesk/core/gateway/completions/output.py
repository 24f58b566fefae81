"""A completion as clients of OpenAI's ``completions`` read it: chunks of a stream, or one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.completions.logprobs import LegacyLogprobs
from relaydesk.core.gateway.completions.request import CompletionRequest
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.errors import error_frame
from relaydesk.core.gateway.json_text import joined
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.sse import DONE_FRAME, HEARTBEAT, data_frame
from relaydesk.core.gateway.usage import Usage

_EMPTY: Final = b'""'


class CompletionOutput:
    """`Output` of one completion: the engine's text and finish reasons untouched.

    The prompt goes before a choice's text where ``echo`` asks for it.
    """

    __slots__ = ("_echoed", "_head", "_include_usage", "_logprobs", "_request")

    media_type: Final = "text/event-stream"
    heartbeat: Final = HEARTBEAT

    def __init__(self, identity: Identity, request: CompletionRequest) -> None:
        self._request = request
        self._head = b'{"id":"cmpl-%b","object":"text_completion","created":%d,"model":%b,"choices":[' % (
            identity.token.encode(),
            identity.created,
            encode(identity.model),
        )
        self._include_usage = request.include_usage
        self._echoed = [not request.echo] * request.choices
        self._logprobs = [LegacyLogprobs(request.logprobs or 0) for _ in range(request.choices)]

    def piece(self, choice: int, piece: Piece) -> bytes:
        logprobs = self._logprobs[choice].of_piece(piece.logprobs) if piece.logprobs else b"null"
        said = self._choice(choice, piece.content or _EMPTY, logprobs, piece.finish or b"null")
        frame = data_frame(self._head + said + b"]}")
        if self._echoed[choice]:
            return frame
        self._echoed[choice] = True
        prompt = self._choice(choice, self._request.prompt_of(choice).body, b"null", b"null")
        return data_frame(self._head + prompt + b"]}") + frame

    def close(self, usage: Usage, spent: Spent) -> bytes:
        """``[DONE]``; before it, where asked for, the usage with no choices."""
        if not self._include_usage:
            return DONE_FRAME
        return data_frame(self._head + b'],"usage":' + encode(usage) + b"}") + DONE_FRAME

    def error(self, fault: Fault) -> bytes:
        return error_frame(fault)

    def whole(self, answers: Sequence[Answer], usage: Usage, spent: Spent) -> bytes:
        choices = b",".join(self._whole_choice(number, answer) for number, answer in enumerate(answers))
        return self._head + choices + b'],"usage":' + encode(usage) + b"}"

    def _whole_choice(self, number: int, answer: Answer) -> bytes:
        text = answer.content or _EMPTY
        if self._request.echo:
            text = joined([self._request.prompt_of(number).body, text])
        logprobs = b"null"
        if answer.logprobs is not None:
            logprobs = self._logprobs[number].of_answer(answer.logprobs)
        return self._choice(number, text, logprobs, answer.finish)

    def _choice(self, number: int, text: bytes, logprobs: bytes, finish: bytes) -> bytes:
        return b'{"text":%b,"index":%d,"logprobs":%b,"finish_reason":%b}' % (text, number, logprobs, finish)
