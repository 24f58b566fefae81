"""Stop texts, kept to whatever the engine makes of them.

Text that may be the beginning of a stop text is held back until that is decided; a stop text is never said,
what stands before it always is. The stop text that is complete first counts, wherever the pieces are cut. It
speaks of the answer's text only: reasoning and tool calls pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.piece import Piece, says_something
from relaydesk.core.gateway.usage import Tally
from relaydesk.core.gateway.work import Reader

# An engine that was told of the stop text ends within an event or two. One that goes on is left.
MAX_AFTER: Final = 16

_TEXT: Final = msgspec.json.Decoder(str)
_LOGPROBS: Final = msgspec.json.Decoder(dict[str, Raw])
_ENTRIES: Final = msgspec.json.Decoder(list[Raw])


class StopFinder:
    """Looks for several texts at once in a text that comes in pieces (Knuth, Morris and Pratt)."""

    __slots__ = ("_borders", "_states", "_texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = tuple(texts)
        self._borders = [_borders(text) for text in texts]
        self._states = [0] * len(texts)

    @property
    def open(self) -> int:
        """How many characters at the end of what was read may begin a stop text."""
        return max(self._states, default=0)

    def read(self, text: str) -> tuple[int, int] | None:
        """Where in ``text`` the first stop text ends, and its length; None where none does."""
        ends: list[tuple[int, int]] = []
        for number, stop in enumerate(self._texts):
            state = self._states[number]
            at = (stop[:state] + text).find(stop)
            if at >= 0:
                ends.append((at + len(stop) - state, -len(stop)))
            else:
                self._states[number] = self._begun(number, text)
        if not ends:
            return None
        end, length = min(ends)
        return end, -length

    def _begun(self, number: int, text: str) -> int:
        """How much of a stop text, which ``text`` does not hold, begins at the end of ``text``."""
        stop, borders, state = self._texts[number], self._borders[number], self._states[number]
        if len(text) >= len(stop):
            # What can begin it is shorter than itself.
            text, state = text[len(text) - len(stop) + 1 :], 0
        for char in text:
            while state and stop[state] != char:
                state = borders[state - 1]
            if stop[state] == char:
                state += 1
        return state


class StopReader:
    """`Reader` of a choice that ends before the first stop text.

    The logprobs of a token go with its first character: where that is not said, neither are they.
    ``matched`` is the stop text that ended it, empty where none has.
    """

    __slots__ = ("_after", "_entries", "_finder", "_held", "_inner", "_said", "_stopped", "matched")

    def __init__(self, inner: Reader, stops: Sequence[str]) -> None:
        self._inner = inner
        self._finder = StopFinder(stops)
        self._held = ""
        self._said = 0  # characters, since the beginning
        self._entries: list[tuple[int, bytes]] = []  # logprobs held back, by where their text begins
        self._stopped = False
        self._after = 0
        self.matched = ""

    @property
    def tally(self) -> Tally:
        return self._inner.tally

    def read(self, data: bytes) -> Piece | None:
        piece = self._inner.read(data)
        if self._stopped:
            self._after += 1
            if self._after >= MAX_AFTER:
                # It does not know stop texts: nothing it will say is wanted, its usage is as told so far.
                self.tally.exact = True
            return None
        if piece is None:
            return None
        begins = self._said + len(self._held)
        if piece.logprobs:
            self._entries.append((begins, piece.logprobs))
        text = _decoded(piece.content) if piece.content else ""
        found = self._finder.read(text) if text else None
        whole = self._held + text
        if found is not None:
            end, length = found
            end += len(self._held)
            whole, self.matched = whole[: end - length], whole[end - length : end]
            self._stopped = True
            self.tally.finish_reason = "stop"
            piece.finish = b'"stop"'
        held = 0 if piece.finish else self._finder.open
        said, self._held = whole[: len(whole) - held], whole[len(whole) - held :]
        self._said += len(said)
        piece.content = encode(said) if said else b""
        piece.logprobs = self._released(everything=bool(piece.finish) and not self._stopped)
        return piece if says_something(piece) else None

    def end(self) -> None:
        self._inner.end()

    def _released(self, *, everything: bool) -> bytes:
        """The logprobs of what has been said by now, as one object."""
        # A token without text of its own is said where nothing before it is held back.
        reached = self._said if self._held or self._stopped else self._said + 1
        ready = len(self._entries) if everything else 0
        while ready < len(self._entries) and self._entries[ready][0] < reached:
            ready += 1
        released = [logprobs for _, logprobs in self._entries[:ready]]
        del self._entries[:ready]
        return released[0] if len(released) == 1 else _merged(released)


def stopped(reader: Reader, stops: Sequence[str]) -> Reader:
    """``reader`` where there is nothing to stop at, or one that stops."""
    return StopReader(reader, stops) if stops else reader


def _borders(text: str) -> list[int]:
    """For every beginning of ``text`` the length of its longest end that also begins it."""
    borders = [0] * len(text)
    length = 0
    for at in range(1, len(text)):
        while length and text[at] != text[length]:
            length = borders[length - 1]
        if text[at] == text[length]:
            length += 1
        borders[at] = length
    return borders


def _decoded(data: bytes) -> str:
    try:
        return _TEXT.decode(data)
    except (msgspec.MsgspecError, ValueError):
        raise PeerError("engine_failed", "the engine sent text that is no JSON") from None


def _merged(parts: list[bytes]) -> bytes:
    """Logprobs of several pieces: each list (``content``, ``refusal``) joined, entries untouched."""
    if not parts:
        return b""
    merged: dict[str, list[Raw]] = {}
    try:
        for part in parts:
            for name, raw in _LOGPROBS.decode(part).items():
                if bytes(raw)[:1] == b"[":
                    merged.setdefault(name, []).extend(_ENTRIES.decode(raw))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise PeerError("engine_failed", "the engine sent logprobs that cannot be read") from None
    return encode(merged)
