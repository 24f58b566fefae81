"""Server-sent events: bytes in, the payloads of whole events out."""

from __future__ import annotations

from typing import Final

from relaydesk.engine.infer.http1 import broken

EVENT_LIMIT: Final = 8 * 1024 * 1024


class SseParser:
    """Splits a stream into event payloads: the ``data`` lines of one event, joined by newlines.

    Comments and the fields ``event``, ``id`` and ``retry`` are dropped. An event cut off by the end of the
    stream is not delivered, as the standard says. Raises `PeerError` ``engine_failed`` past ``EVENT_LIMIT``.
    """

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._held = 0
        self._skip_newline = False

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that ``data`` completes."""
        if self._skip_newline and data:
            self._skip_newline = False
            if data.startswith(b"\n"):  # the second half of a CR LF that was cut
                data = data[1:]
        if b"\n" not in data and b"\r" not in data:
            if data:
                self._hold(len(data))
                self._pieces.append(data)
            return []
        if self._pieces:
            data = b"".join([*self._pieces, data])
            self._pieces.clear()
        lines = data.splitlines(keepends=True)  # of bytes: CR, LF and CR LF only
        rest = b"" if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        self._skip_newline = data.endswith(b"\r")
        events: list[bytes] = []
        for line in lines:
            self._line(line.rstrip(b"\r\n"), events)
        if rest:
            self._pieces.append(rest)
        self._held = len(rest) + sum(map(len, self._data))
        self._hold(0)
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            self._data.append(b"")
        elif not line and self._data:
            payload = b"\n".join(self._data)
            self._data.clear()
            if len(payload) > self._limit:
                raise broken("an event too long")
            events.append(payload)

    def _hold(self, more: int) -> None:
        self._held += more
        if self._held > self._limit:
            raise broken("an event too long")
