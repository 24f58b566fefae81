"""Requests over connections that stay open, written by hand: it must cost less than what it measures."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import cast


class Line(asyncio.Protocol):
    """One connection over which one request goes after the other.

    ``run`` asks ``count`` times and returns when the last answer is whole. Answers need a length, or are
    streams that end with an empty chunk; of these ``first_s`` is the time to the first byte of the body.
    """

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.first_s: list[float] = []
        self.bytes = 0
        self._left = 0
        self._data = b""
        self._in_body = False
        self._body_left = -1
        self._started = 0.0
        self.began: asyncio.Future[None] | None = None
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("the connection was closed"))

    async def run(self, count: int) -> None:
        self._left = count
        self._done = asyncio.get_running_loop().create_future()
        self._send()
        await self._done

    def _send(self) -> None:
        self._data, self._in_body, self._body_left = b"", False, -1
        self._started = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._in_body:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._data[:end].lower()
            if not head.startswith(b"http/1.1 200"):
                self._fail(head)
                return
            at = head.find(b"content-length:")
            self._body_left = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else -1
            self._data = self._data[end + 4 :]
            self._in_body = True
            if not self._data:
                return
        if len(self.first_s) < 100_000 and self._started:
            self.first_s.append(time.perf_counter() - self._started)
            self._started = 0.0
        if self.began is not None and not self.began.done():
            self.began.set_result(None)
        self.bytes += len(data)
        if self._body_left >= 0:
            if len(self._data) >= self._body_left:
                self._next()
        elif self._data.endswith(b"0\r\n\r\n"):
            self._next()
        else:
            self._data = self._data[-8:]

    def _next(self) -> None:
        self._left -= 1
        if self._left > 0:
            self._send()
        elif not self._done.done():
            self._done.set_result(None)

    def _fail(self, head: bytes) -> None:
        self.transport.abort()
        if not self._done.done():
            self._done.set_exception(RuntimeError(f"not 200: {head[:40]!r}"))


async def open_line(port: int, context: ssl.SSLContext, request: bytes) -> Line:
    """Connect to a port of this machine."""
    loop = asyncio.get_running_loop()
    _, line = await loop.create_connection(
        lambda: Line(request), "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    return line
