"""Server-sent events, both ways, without I/O.

The parser follows the WHATWG rules as far as data goes: CR, LF and CRLF end lines, data lines of one event
join by LF, comments and unknown fields are dropped, bytes that are no UTF-8 become U+FFFD. One deviation:
a field ``error``, which some engines send, is an event of that type. The encoder writes nothing but
``data:`` and comments, because clients choke on ``id:``, ``retry:`` and empty data.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from relaydesk.core.errors import PeerError

MAX_LINE: Final = 1024 * 1024
MAX_EVENT: Final = 2 * 1024 * 1024

# Some clients give a line that begins with ": ping" a meaning of its own.
HEARTBEAT: Final = b": keep-alive\n\n"
DONE: Final = b"[DONE]"

_BOM: Final = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its type (``message`` where none was named) and its data, valid UTF-8."""

    type: str
    data: bytes


def chunk_of(event: Event) -> bytes:
    """The event's data; that of an ``error`` event wrapped, so that it reads like an error in a chunk."""
    if event.type == "error" and not event.data.startswith(b'{"error":'):
        return b'{"error":' + event.data + b"}"
    return event.data


class SseParser:
    """Turns the bytes of a stream, cut anywhere, into events."""

    __slots__ = ("_after_cr", "_data", "_line", "_max_event", "_max_line", "_size", "_start", "_type")

    def __init__(self, max_line: int = MAX_LINE, max_event: int = MAX_EVENT) -> None:
        self._max_line = max_line
        self._max_event = max_event
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._type = ""
        self._after_cr = False
        self._start = True

    def feed(self, data: bytes) -> list[Event]:
        """The events that ``data`` completes.

        Raises `PeerError` ``engine_failed`` where a line or an event grows past its bound; the stream is
        then of no further use.
        """
        if self._after_cr and data:
            # A CR ended the last piece: an LF here is the other half of that line end.
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop()
        events: list[Event] = []
        for line in lines:
            if self._line:
                self._hold(line)
                line = bytes(self._line)
                self._line.clear()
            elif len(line) > self._max_line:
                self._too_long()
            self._take(line, events)
        self._hold(rest)
        return events

    def close(self) -> list[Event]:
        """The event of a stream that ended without its blank line; an unfinished line is dropped."""
        self._line.clear()
        events: list[Event] = []
        self._take(b"", events)
        return events

    def _hold(self, piece: bytes) -> None:
        if len(self._line) + len(piece) > self._max_line:
            self._too_long()
        self._line += piece

    def _take(self, line: bytes, events: list[Event]) -> None:
        """One whole line."""
        if self._start:
            self._start = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                joined = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                events.append(Event(self._type or "message", _valid(joined)))
                self._data = []
                self._size = 0
            self._type = ""
            return
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data" or name == b"error":
            self._size += len(value) + 1
            if self._size > self._max_event:
                self._too_long()
            self._data.append(value)
            if name == b"error":
                self._type = "error"
        elif name == b"event":
            self._type = value[:64].decode("utf-8", "replace")

    def _too_long(self) -> None:
        raise PeerError("engine_failed", "the engine sent an event without an end")


def data_frame(payload: bytes) -> bytes:
    """One event carrying ``payload``, which is JSON or ``[DONE]``.

    A line end inside JSON can only be white space between its tokens, so it becomes a space: one event
    stays one line, which simple readers need.
    """
    if b"\n" in payload or b"\r" in payload:
        payload = payload.replace(b"\r", b" ").replace(b"\n", b" ")
    return b"data: " + payload + b"\n\n"


DONE_FRAME: Final = data_frame(DONE)


def _valid(data: bytes) -> bytes:
    if data.isascii():
        return data
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data
