"""An answer as Ollama's clients read it: one JSON object a line, or one object.

Every line has ``model``, ``created_at`` and ``done``; text is never null and no line but an error's has the
key ``error``, since clients look for the key alone. The last line carries the counts and durations, in
nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.decode import decoder, encode
from relaydesk.core.gateway.ollama.calls import Calls, said
from relaydesk.core.gateway.ollama.errors import ollama_error_line
from relaydesk.core.gateway.ollama.instant import instant
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.usage import Usage

MEDIA_TYPE: Final = "application/x-ndjson"

# Text, thinking and tool calls, as JSON and the latter two empty where there are none, as a line has them.
Said = Callable[[bytes, bytes, bytes], bytes]

_EMPTY: Final = b'""'
_LENGTH: Final = b'"length"'
_LOGPROBS: Final = decoder(dict[str, Raw])


def chat_said(text: bytes, thinking: bytes, calls: bytes) -> bytes:
    """As ``/api/chat`` says it."""
    message = b'"message":{"role":"assistant","content":' + text
    if thinking:
        message += b',"thinking":' + thinking
    if calls:
        message += b',"tool_calls":' + calls
    return message + b"}"


def generate_said(text: bytes, thinking: bytes, _calls: bytes) -> bytes:
    """As ``/api/generate`` says it; it has no tools."""
    return b'"response":' + text + (b',"thinking":' + thinking if thinking else b"")


class OllamaOutput:
    """`Output` of one answer. ``reason`` is the end's where no model spoke: ``load`` or ``unload``."""

    __slots__ = ("_calls", "_finish", "_head", "_reason", "_said", "heartbeat")

    media_type: Final = MEDIA_TYPE

    def __init__(self, identity: Identity, said: Said, reason: str = "") -> None:
        self._said = said
        self._reason = reason
        self._calls = Calls()
        self._finish = b""
        created_at = encode(instant(identity.created_ms))
        self._head = b'{"model":%b,"created_at":%b,' % (encode(identity.model), created_at)
        self.heartbeat = self._line(_EMPTY, b"", b"", b"")

    def piece(self, choice: int, piece: Piece) -> bytes:
        text = _text(piece.content, piece.refusal)
        if piece.finish:
            self._finish = piece.finish
        calls = self._calls.take(piece) if piece.calls or piece.finish else b""
        if not (text or piece.reasoning or calls or piece.logprobs):
            return b""
        logprobs = _token_list(piece.logprobs) if piece.logprobs else b""
        return self._line(text or _EMPTY, piece.reasoning, calls, logprobs)

    def close(self, usage: Usage, spent: Spent) -> bytes:
        said = self._said(_EMPTY, b"", b"")
        return self._head + said + self._end(self._finish, usage, spent) + b"}\n"

    def error(self, fault: Fault) -> bytes:
        return ollama_error_line(fault)

    def whole(self, answers: Sequence[Answer], usage: Usage, spent: Spent) -> bytes:
        if not answers:
            return self.close(usage, spent)
        answer = answers[0]
        calls = said(answer.calls, 0, answer.finish) if answer.calls else b""
        text = _text(answer.content, answer.refusal) or _EMPTY
        tokens = (answer.logprobs or {}).get("content")
        logprobs = b',"logprobs":' + encode(tokens) if tokens else b""
        message = self._said(text, answer.reasoning, calls)
        return self._head + message + logprobs + self._end(answer.finish, usage, spent) + b"}"

    def _line(self, text: bytes, thinking: bytes, calls: bytes, logprobs: bytes) -> bytes:
        line = self._head + self._said(text, thinking, calls)
        if logprobs:
            line += b',"logprobs":' + logprobs
        return line + b',"done":false}\n'

    def _end(self, finish: bytes, usage: Usage, spent: Spent) -> bytes:
        """What only the last line has."""
        if self._reason:
            return b',"done":true,"done_reason":"%b","total_duration":%d,"load_duration":%d' % (
                self._reason.encode(),
                spent.total,
                spent.load,
            )
        # A tool call and a content filter end an answer like any other here.
        reason = _LENGTH if finish == _LENGTH else b'"stop"'
        details = usage.prompt_tokens_details
        cached = b"" if details is None else b',"prompt_eval_cached_count":%d' % details.cached_tokens
        # Clients divide counts by durations.
        return (
            b',"done":true,"done_reason":%b,"total_duration":%d,"load_duration":%d,"prompt_eval_count":%d%b,'
            b'"prompt_eval_duration":%d,"eval_count":%d,"eval_duration":%d'
        ) % (
            reason,
            spent.total,
            spent.load,
            usage.prompt_tokens,
            cached,
            max(1, spent.prompt),
            usage.completion_tokens,
            max(1, spent.answer),
        )


def _text(content: bytes, refusal: bytes) -> bytes:
    """A refusal is text like any other in this dialect."""
    if content and refusal:
        return content[:-1] + refusal[1:]
    return content or refusal


def _token_list(logprobs: bytes) -> bytes:
    """The tokens of an engine's ``logprobs``, on one line; empty where it has none."""
    try:
        tokens = bytes(_LOGPROBS.decode(logprobs).get("content", b""))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return b""
    return tokens.replace(b"\n", b" ").replace(b"\r", b" ") if tokens[:1] == b"[" else b""
