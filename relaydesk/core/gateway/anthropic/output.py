"""An answer as clients of Anthropic's ``messages`` read it: typed events of a stream, or one object.

Blocks come one after the other: one is stopped before the next starts. What the prompt cost is known only
at the end and said there; a stream opens with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.answer import Answer, Call
from relaydesk.core.gateway.anthropic.ending import Ending
from relaydesk.core.gateway.anthropic.errors import anthropic_error_event
from relaydesk.core.gateway.call_deltas import CallSequence
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.typed_event import typed_event
from relaydesk.core.gateway.usage import Usage

PING: Final = typed_event(b"ping", b'{"type":"ping"}')

_REASONS: Final = {
    b'"length"': b"max_tokens",
    b'"tool_calls"': b"tool_use",
    b'"content_filter"': b"refusal",
}
_STRING: Final = msgspec.json.Decoder(str)
_ANY: Final = msgspec.json.Decoder(Raw)
_STOP: Final = typed_event(b"message_stop", b'{"type":"message_stop"}')


class _Kind(NamedTuple):
    """A kind of block: its members as it starts, and the members of a delta before its text."""

    start: bytes
    delta: bytes


_THINKING: Final = _Kind(
    b'"type":"thinking","thinking":"","signature":""', b'"type":"thinking_delta","thinking"'
)
_TEXT: Final = _Kind(b'"type":"text","text":""', b'"type":"text_delta","text"')
_INPUT_DELTA: Final = b'"type":"input_json_delta","partial_json"'


class MessagesOutput:
    """`Output` of one message. Without ``thoughts`` nothing is said of what the model thinks.

    ``ending`` is filled in by the reader.
    """

    media_type: Final = "text/event-stream"
    heartbeat: Final = PING

    def __init__(self, identity: Identity, ending: Ending, *, thoughts: bool = True) -> None:
        self._head = b'{"id":"msg_%b","type":"message","role":"assistant","model":%b' % (
            identity.token.encode(),
            encode(identity.model),
        )
        self._ending = ending
        self._thoughts = thoughts
        self._started = False
        self._open: _Kind | None = None
        self._index = -1
        self._calls = CallSequence()
        self._called = False
        self._finish = b""

    def piece(self, choice: int, piece: Piece) -> bytes:
        frames = [self._start()]
        if piece.reasoning and self._thoughts:
            frames.append(self._text(_THINKING, piece.reasoning))
        frames += [self._text(_TEXT, text) for text in (piece.content, piece.refusal) if text]
        for delta in self._calls.read(piece.calls) if piece.calls else ():
            if delta.name is not None:
                self._called = True
                block = {"type": "tool_use", "id": delta.id, "name": delta.name, "input": {}}
                frames.append(self._block(_Kind(encode(block)[1:-1], _INPUT_DELTA)))
            if delta.arguments != b'""':
                frames.append(self._delta(_INPUT_DELTA, delta.arguments))
        if piece.finish:
            self._finish = piece.finish
        return b"".join(frames)

    def close(self, usage: Usage, spent: Spent) -> bytes:
        delta = b'{"type":"message_delta","delta":{%b},"usage":%b}' % (
            self._ended(self._finish, called=self._called),
            _usage(usage),
        )
        return self._start() + self._stop() + typed_event(b"message_delta", delta) + _STOP

    def error(self, fault: Fault) -> bytes:
        return anthropic_error_event(fault)

    def whole(self, answers: Sequence[Answer], usage: Usage, spent: Spent) -> bytes:
        answer = answers[0]
        blocks: list[dict[str, object]] = []
        if answer.reasoning and self._thoughts:
            blocks.append({"type": "thinking", "thinking": Raw(answer.reasoning), "signature": ""})
        texts = [text for text in (answer.content, answer.refusal) if text]
        blocks += [{"type": "text", "text": Raw(text)} for text in texts]
        cut = answer.finish == b'"length"'
        for number, call in enumerate(answer.calls):
            last = number == len(answer.calls) - 1
            blocks.append(
                {
                    "type": "tool_use",
                    "id": call.id,
                    "name": call.name,
                    "input": _input(call, cut=cut and last),
                }
            )
        return b'%b,"content":%b,%b,"usage":%b}' % (
            self._head,
            encode(blocks),
            self._ended(answer.finish, called=bool(answer.calls)),
            _usage(usage),
        )

    def _ended(self, finish: bytes, *, called: bool) -> bytes:
        """How the answer ended, as members."""
        if matched := self._ending.matched:
            return b'"stop_reason":"stop_sequence","stop_sequence":' + encode(matched)
        reason = _REASONS.get(finish, b"tool_use" if called else b"end_turn")
        return b'"stop_reason":"%b","stop_sequence":null' % reason

    def _start(self) -> bytes:
        """What opens a stream, the first time."""
        if self._started:
            return b""
        self._started = True
        message = b'%b,"content":[],"stop_reason":null,"stop_sequence":null,"usage":%b}' % (
            self._head,
            _usage(Usage(0, 0, 0)),
        )
        return typed_event(b"message_start", b'{"type":"message_start","message":%b}' % message)

    def _text(self, kind: _Kind, text: bytes) -> bytes:
        return (b"" if self._open is kind else self._block(kind)) + self._delta(kind.delta, text)

    def _block(self, kind: _Kind) -> bytes:
        """Start a block, after the end of the one that is open."""
        stopped = self._stop()
        self._open = kind
        self._index += 1
        payload = b'{"type":"content_block_start","index":%d,"content_block":{%b}}' % (
            self._index,
            kind.start,
        )
        return stopped + typed_event(b"content_block_start", payload)

    def _delta(self, delta: bytes, text: bytes) -> bytes:
        payload = b'{"type":"content_block_delta","index":%d,"delta":{%b:%b}}' % (self._index, delta, text)
        return typed_event(b"content_block_delta", payload)

    def _stop(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        payload = b'{"type":"content_block_stop","index":%d}' % self._index
        return typed_event(b"content_block_stop", payload)


def _input(call: Call, *, cut: bool) -> Raw:
    """A call's arguments as the object they are; one that was cut off has none that can be read."""
    text = _STRING.decode(call.arguments)
    try:
        found = bytes(_ANY.decode(text)) if text.strip() else b"{}"
    except (msgspec.MsgspecError, ValueError, RecursionError):
        found = b""
    if found[:1] == b"{":
        return Raw(found)
    if cut:
        return Raw(b"{}")
    raise PeerError("engine_failed", "the model called a tool with arguments that are no JSON object")


def _usage(usage: Usage) -> bytes:
    """Tokens from the cache are not among the ``input_tokens`` here."""
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else 0
    return encode(
        {
            "input_tokens": usage.prompt_tokens - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": usage.completion_tokens,
        }
    )
