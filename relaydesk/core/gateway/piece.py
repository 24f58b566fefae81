"""One choice's stream as an engine sends it, taken apart: pieces for the client, facts for the account.

A `Piece` holds JSON values as the engine wrote them; no front decodes text to pass it on. Both fronts and
both forms (streamed, folded) start from here.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import present
from relaydesk.core.gateway.faults import engine_fault
from relaydesk.core.gateway.sse import DONE
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

    __slots__ = ("_calls", "done", "tally")

    def __init__(self, call_prefix: str = "call") -> None:
        self._calls = CallTracker(call_prefix)
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
        try:
            chunk = _CHUNK.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise PeerError("engine_failed", "the engine sent something that is no chunk") from None
        if present(chunk.error):
            raise _reported(data)
        tally = self.tally
        piece = self._piece(chunk.choices[0]) if chunk.choices else None
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

    def _piece(self, choice: _Choice) -> Piece | None:
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
                piece.calls = self._calls.read(calls)
            if piece.content or piece.reasoning or piece.calls or piece.refusal:
                tokens = 1
        elif text := _text(choice.text):
            # A completion's chunk has its text here.
            piece.content = text
            tokens = 1
        if piece.logprobs and tokens:
            # Each entry is one token; its own alternatives are nested one level deeper.
            tokens = max(1, piece.logprobs.count(b'"top_logprobs"'))
        if choice.finish_reason is not None:
            tally.finish_reason = choice.finish_reason
            piece.finish = msgspec.json.encode(choice.finish_reason)
        if not (tokens or piece.logprobs or piece.finish):
            return None
        tally.take_piece(tokens)
        return piece


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
