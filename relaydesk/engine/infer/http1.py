"""The receiving half of HTTP/1.1 as an engine speaks it: bytes in, body bytes out. No sockets.

Written by hand because the worker's connection is used once and the time to the first byte counts; the
budget for everything the hub adds to a request is one millisecond.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from relaydesk.core.errors import PeerError

HEAD_LIMIT: Final = 64 * 1024
_SIZE_LINE_LIMIT: Final = 1024
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)(?: [^\r\n]*)?")
# The blanks around the value are stripped afterwards: in the pattern, a line of blanks that ends badly would
# take time by the cube of its length.
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\x00]*)")
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")

_Step = Literal["head", "length", "eof", "size", "chunk", "chunk-end", "trailer", "done"]


class ResponseParser:
    """One response. ``feed`` raises `PeerError` ``engine_failed`` for anything that is not HTTP/1.x.

    ``surplus``: something came behind the end of the response.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.surplus = False
        self._step: _Step = "head"
        self._buffer = b""
        self._left = 0

    @property
    def head_done(self) -> bool:
        return self._step != "head"

    @property
    def done(self) -> bool:
        """The body has ended as announced."""
        return self._step == "done"

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return the body bytes in them. What follows the end is ignored."""
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        out: list[bytes] = []
        at = 0
        while at < len(data) and self._step != "done":
            after = self._advance(data, at, out)
            if after < 0:
                self._buffer = data[at:]
                break
            at = after
        else:
            self.surplus = self.surplus or at < len(data)
        return out[0] if len(out) == 1 else b"".join(out)

    def feed_eof(self) -> None:
        """The connection ended. Raises where the body was not complete."""
        if self._step == "eof":
            self._step = "done"
        elif self._step != "done":
            raise self._cut()

    def _broken(self, what: str) -> Exception:
        """An answer that no client could read."""
        return PeerError("engine_failed", f"the engine's answer is broken ({what})", "send the request again")

    def _cut(self) -> Exception:
        """An answer that ended too early."""
        return PeerError(
            "engine_failed",
            "the engine ended the connection before its answer was complete",
            "send the request again",
        )

    def _advance(self, data: bytes, at: int, out: list[bytes]) -> int:
        """One step from ``at``; the new position, or -1 where more bytes are needed."""
        if self._step in ("chunk", "length"):
            piece = data[at : at + self._left]
            out.append(piece)
            self._left -= len(piece)
            if not self._left:
                self._step = "chunk-end" if self._step == "chunk" else "done"
            return at + len(piece)
        if self._step == "eof":
            out.append(data[at:])
            return len(data)
        if self._step == "head":
            return self._head(data, at)
        return self._chunk_line(data, at, out)

    def _head(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n\r\n", at)
        if end < 0 or end - at > HEAD_LIMIT:
            if len(data) - at > HEAD_LIMIT:
                raise self._broken("headers too long")
            return -1
        lines = data[at:end].split(b"\r\n")
        match = _STATUS.fullmatch(lines[0])
        if not match:
            raise self._broken("no HTTP status line")
        fields: list[tuple[str, str]] = []
        for line in lines[1:]:
            field = _HEADER.fullmatch(line)
            if not field:
                raise self._broken("a malformed header")
            fields.append((field[1].decode("ascii").lower(), field[2].strip(b" \t").decode("latin-1")))
        self._take_head(lines[0], int(match[1]), fields)
        return end + 4

    def _take_head(self, _line: bytes, status: int, fields: list[tuple[str, str]]) -> None:
        if status >= 200:  # an interim response is followed by the real one
            self.status, self.headers = status, dict(fields)
            self._begin_body()

    def _begin_body(self) -> None:
        if self.status in (204, 304):
            self._step = "done"
        elif "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].lower() != "chunked":
                raise self._broken("an unknown transfer encoding")
            self._step = "size"
        elif "content-length" in self.headers:
            length = self.headers["content-length"]
            if not (length.isascii() and length.isdigit() and len(length) < 16):
                raise self._broken("a malformed length")
            self._left = int(length)
            self._step = "length" if self._left else "done"
        else:
            self._step = "eof"

    def _chunk_line(self, data: bytes, at: int, out: list[bytes]) -> int:
        end = data.find(b"\r\n", at)
        if end < 0:
            if len(data) - at > _SIZE_LINE_LIMIT:
                raise self._broken("a chunk line too long")
            return -1
        line = data[at:end]
        if self._step == "chunk-end":
            if line:
                raise self._broken("a chunk longer than announced")
            self._step = "size"
        elif self._step == "trailer":
            if not line:
                self._step = "done"
        else:
            match = _SIZE.fullmatch(line)
            if not match:
                raise self._broken("a malformed chunk size")
            self._left = int(match[1], 16)
            after = end + 2 + self._left
            if self._left and data[after : after + 2] == b"\r\n":  # the whole chunk is here
                out.append(data[end + 2 : after])
                return after + 2
            self._step = "chunk" if self._left else "trailer"
        return end + 2
