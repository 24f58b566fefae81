"""One choice's stream as an engine sends it, taken apart: pieces for the client, facts for the account.

A `Piece` holds JSON values as the engine wrote them, but for halves of characters; no front decodes text to
pass it on. Both fronts and both forms (streamed, folded) start from here.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import present
from relaydesk.core.gateway.faults import engine_fault
from relaydesk.core.gateway.json_text import joined
from relaydesk.core.gateway.sse import DONE
from relaydesk.core.gateway.surrogates import Surrogates, tagged, untagged
from relaydesk.core.gateway.toolcalls import CallTracker
from relaydesk.core.gateway.usage import Tally


class Piece(msgspec.Struct, gc=False):
    """What one engine chunk adds to a choice; each field is JSON, empty where the chunk has none.

    ``content``, ``reasoning`` and ``refusal`` are strings with their quotes, ``calls`` a list of tool-call
    deltas in OpenAI's form, ``logprobs`` an object, ``finish`` the reason's string.
    """

    content: bytes = b""
    reasoning: bytes = b""
    refusal: bytes = b""
    calls: bytes = b""
    logprobs: bytes = b""
    finish: bytes = b""


class _Delta(msgspec.Struct, gc=False):
    content: Raw = Raw()
    reasoning_content: Raw = Raw()
    reasoning: Raw = Raw()
    refusal: Raw = Raw()
    tool_calls: Raw = Raw()


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    text: Raw = Raw()
    logprobs: Raw = Raw()
    finish_reason: str | None = None
    index: int = 0


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Raw = Raw()
    timings: Raw = Raw()
    prompt_progress: Raw = Raw()
    error: Raw = Raw()


_CHUNK: Final = msgspec.json.Decoder(_Chunk)
_EMPTY: Final = b'""'


class ChoiceStream:
    """Reads the events of one engine request, which has one choice."""

    __slots__ = ("_calls", "_content", "_reasoning", "done", "tally")

    def __init__(self, call_prefix: str = "call") -> None:
        self._calls = CallTracker(call_prefix)
        self._content = Surrogates()
        self._reasoning = Surrogates()
        self.tally = Tally()
        self.done = False

    def read(self, data: bytes, kind: str = "message") -> Piece | None:
        """The piece in one event's data, None where it has nothing for the client; ``kind`` is its type.

        Raises `PeerError`: what the engine reported in-band, or ``engine_failed`` where the data is no
        chunk. `tally` stays right either way.
        """
        if data == DONE:
            self.done = True
            return None
        if kind == "error":
            raise _reported(data)
        torn = False
        try:
            chunk = _CHUNK.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            chunk, torn = _torn(data), True
        if present(chunk.error):
            raise _reported(data)
        tally = self.tally
        piece = self._piece(chunk.choices[0], torn) if chunk.choices else None
        if progress := bytes(chunk.prompt_progress):
            tally.take_progress(progress)
        if usage := bytes(chunk.usage):
            tally.take_usage(usage)
        if timings := bytes(chunk.timings):
            tally.take_timings(timings)
        return piece

    def end(self) -> None:
        """To be called when the engine's body has ended.

        Raises `PeerError` ``engine_failed`` where the answer is not finished: an engine that dies only
        closes its connection.
        """
        if self.tally.finish_reason is None:
            raise PeerError("engine_failed", "the engine stopped in the middle of the answer")

    def _piece(self, choice: _Choice, torn: bool) -> Piece | None:
        tally = self.tally
        if choice.index != 0 or tally.finish_reason is not None:
            return None
        piece = Piece(logprobs=present(choice.logprobs))
        if piece.logprobs and piece.logprobs[:1] != b"{":
            raise PeerError("engine_failed", "the engine sent logprobs that are not an object")
        tokens = 0
        delta = choice.delta
        if delta is not None:
            piece.content = _text(delta.content)
            piece.reasoning = _text(delta.reasoning_content) or _text(delta.reasoning)
            piece.refusal = _text(delta.refusal)
            calls = present(delta.tool_calls)
            if calls:
                piece.calls = self._calls.read(calls, torn=torn)
            if piece.content or piece.reasoning or piece.calls or piece.refusal:
                tokens = 1
        elif text := _text(choice.text):
            # A completion's chunk has its text here.
            piece.content = text
            tokens = 1
        if piece.logprobs and tokens:
            # Each entry is one token; its own alternatives are nested one level deeper.
            tokens = max(1, piece.logprobs.count(b'"top_logprobs"'))
        self._mend(piece, torn)
        if choice.finish_reason:
            self._finish(piece, choice.finish_reason)
        tally.take_piece(tokens)
        return piece if says_something(piece) else None

    def _mend(self, piece: Piece, torn: bool) -> None:
        if torn:
            piece.content, piece.reasoning = untagged(piece.content), untagged(piece.reasoning)
            piece.refusal = _whole(untagged(piece.refusal))
        if piece.content:
            piece.content = self._content.read(piece.content)
        if piece.reasoning:
            piece.reasoning = self._reasoning.read(piece.reasoning)

    def _finish(self, piece: Piece, reason: str) -> None:
        """End the choice: with calls it ended because of them, whatever the engine calls that."""
        if reason in ("stop", "tool_calls", "function_call"):
            reason = "tool_calls" if self._calls.count else "stop"
        self.tally.finish_reason = reason
        piece.finish = msgspec.json.encode(reason)
        if rest := self._content.end():
            piece.content = joined([piece.content, rest]) if piece.content else rest
        if rest := self._reasoning.end():
            piece.reasoning = joined([piece.reasoning, rest]) if piece.reasoning else rest
        if rest := self._calls.end():
            piece.calls = piece.calls[:-1] + b"," + rest[1:] if piece.calls else rest


def says_something(piece: Piece) -> bool:
    """Whether a piece has anything for a client."""
    return bool(
        piece.content or piece.reasoning or piece.calls or piece.refusal or piece.logprobs or piece.finish
    )


def _whole(text: bytes) -> bytes:
    """A text that comes in one piece, without halves of characters."""
    surrogates = Surrogates()
    return joined([each for each in (surrogates.read(text), surrogates.end()) if each]) if text else b""


def _torn(data: bytes) -> _Chunk:
    """A chunk that could not be read because a character in it is cut in two."""
    try:
        return _CHUNK.decode(tagged(data))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise PeerError("engine_failed", "the engine sent something that is no chunk") from None


def _reported(data: bytes) -> PeerError:
    """The error that an engine reported inside its stream."""
    fault = engine_fault(0, data)
    return PeerError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)


def _text(raw: Raw) -> bytes:
    """A text field's JSON; empty for absent, null and empty text, which add nothing."""
    data = present(raw)
    if not data or data == _EMPTY:
        return b""
    if data[:1] != b'"':
        raise PeerError("engine_failed", "the engine sent a delta whose text is not a string")
    return data
