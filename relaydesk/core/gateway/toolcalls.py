"""Tool-call deltas, made regular: a call has its own index, a unique id, and its name exactly once.

Engines send every delta at index 0, or without an index, or repeat id and name in each; clients then glue
the arguments of two calls together. A new call is recognised by a new id, by a new index, or by a name
where the id is missing and the call in progress already has its name.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import encode, present
from relaydesk.core.gateway.surrogates import Surrogates, untagged

MAX_CALLS: Final = 256


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Raw = Raw()


class _Delta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


_DELTAS: Final = msgspec.json.Decoder(list[_Delta])


class CallTracker:
    """The tool calls of one choice so far."""

    __slots__ = ("_by_index", "_current", "_ids", "_prefix", "_texts")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._ids: list[tuple[str | None, str]] = []  # (the engine's id, ours), by our index
        self._by_index: dict[int, int] = {}  # the engine's index to ours
        self._current: int | None = None
        self._texts: list[Surrogates] = []  # the arguments so far, by our index

    @property
    def count(self) -> int:
        """Calls so far."""
        return len(self._ids)

    def read(self, data: bytes, *, torn: bool = False) -> bytes:
        """``tool_calls`` of one delta as clients need it; empty where nothing is left.

        ``torn`` says that it has stand-ins for halves of characters.
        Raises `PeerError` ``engine_failed`` where it is none.
        """
        try:
            deltas = _DELTAS.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise PeerError("engine_failed", "the engine sent a malformed tool call") from None
        out = [entry for delta in deltas if (entry := self._one(delta, torn)) is not None]
        return encode(out) if out else b""

    def end(self) -> bytes:
        """Half a character that some arguments ended with, as deltas; empty for none."""
        rests = [(number, text.end()) for number, text in enumerate(self._texts)]
        out = [_more(number, rest) for number, rest in rests if rest]
        return encode(out) if out else b""

    def _one(self, delta: _Delta, torn: bool) -> dict[str, object] | None:
        function = delta.function or _Function()
        arguments = present(function.arguments)
        if arguments and arguments[:1] != b'"':
            # Some engines send the finished arguments as an object.
            arguments = encode(arguments.decode())
        if torn:
            arguments = untagged(arguments)
        known = self._known(delta)
        if known is not None:
            if arguments in (b"", b'""'):
                return None
            arguments = self._texts[known].read(arguments)
            return _more(known, arguments) if arguments else None
        if not function.name:
            raise PeerError("engine_failed", "the engine sent a tool call without a name")
        number = self._open(delta)
        arguments = self._texts[number].read(arguments) if arguments else arguments
        return {
            "index": number,
            "id": self._ids[number][1],
            "type": "function",
            "function": {"name": function.name, "arguments": Raw(arguments or b'""')},
        }

    def _known(self, delta: _Delta) -> int | None:
        """Our index of the call that ``delta`` continues, None where it opens one."""
        at = self._current if delta.index is None else self._by_index.get(delta.index)
        if at is None:
            return None
        if delta.id:
            if delta.id == self._ids[at][0]:
                return at
            return next((i for i, (theirs, _) in enumerate(self._ids) if theirs == delta.id), None)
        named = delta.function is not None and delta.function.name
        return None if named else at

    def _open(self, delta: _Delta) -> int:
        number = len(self._ids)
        if number >= MAX_CALLS:
            raise PeerError("engine_failed", f"the engine sent more than {MAX_CALLS} tool calls")
        taken = {ours for _, ours in self._ids}
        ours = delta.id if delta.id and delta.id not in taken else f"{self._prefix}_{number}"
        self._ids.append((delta.id or None, ours))
        self._texts.append(Surrogates())
        if delta.index is not None:
            self._by_index[delta.index] = number
        self._current = number
        return number


def _more(number: int, arguments: bytes) -> dict[str, object]:
    return {"index": number, "function": {"arguments": Raw(arguments)}}
