"""Cutting a byte stream into lines, for both clients of ``/watch``."""

from __future__ import annotations

from relaydesk.surfaces.control.routes import LINE_LIMIT


class LineTooLongError(Exception):
    """The peer sends a line without end."""


class LineSplitter:
    """Keeps the unfinished line between two reads; at most ``limit`` bytes of it."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._rest = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> list[bytes]:
        """Lines that ``data`` completes, without line ends; empty ones (keep-alives) are left out.

        Raises `LineTooLongError`.
        """
        # What was kept has no line end: only the new bytes are searched, however long the line.
        if b"\n" not in data:
            self._rest += data
            if len(self._rest) > self._limit:
                raise LineTooLongError
            return []
        head, *middle, tail = data.split(b"\n")
        lines = [bytes(self._rest) + head, *middle]
        self._rest = bytearray(tail)
        return [line for line in lines if line]
