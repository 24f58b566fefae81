"""The tool calls in a piece, for dialects that say calls one after the other."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError


class _Function(msgspec.Struct):
    arguments: Raw
    name: str | None = None


class _Delta(msgspec.Struct):
    index: int
    function: _Function
    id: str | None = None


_DELTAS: Final = msgspec.json.Decoder(list[_Delta])


class CallDelta(msgspec.Struct, frozen=True):
    """A call that opens, where ``name`` is given, or a piece of the arguments of the one that is open.

    ``arguments`` is a JSON string, maybe empty text.
    """

    arguments: bytes
    id: str = ""
    name: str | None = None


class CallSequence:
    """Follows the calls of one choice through the deltas of its pieces, which come regular (`toolcalls`)."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 0

    def read(self, data: bytes) -> list[CallDelta]:
        """The deltas in ``Piece.calls``.

        Raises `PeerError` ``engine_failed`` where a call goes on after the next one has begun.
        """
        found = []
        for delta in _DELTAS.decode(data):
            arguments = bytes(delta.function.arguments)
            if delta.index == self._next:
                self._next += 1
                found.append(CallDelta(arguments, delta.id or "", delta.function.name or ""))
            elif delta.index == self._next - 1:
                found.append(CallDelta(arguments))
            else:
                raise PeerError("engine_failed", "the engine went back to a tool call that had ended")
        return found
