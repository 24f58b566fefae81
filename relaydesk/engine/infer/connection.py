"""One connection to a worker: a request goes out, a response comes in, and it is never used again."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import Final, cast

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.sse import SseParser, chunk_of
from relaydesk.engine.infer.engine import DONE
from relaydesk.engine.infer.http1 import ResponseParser

_HIGH_WATER: Final = 256 * 1024
_LOW_WATER: Final = 64 * 1024
ERROR_BODY_LIMIT: Final = 64 * 1024
# How late events may be for a reader without hurry, and what of them is held meanwhile.
_RELAXED_S: Final = 0.1
_RELAXED_BYTES: Final = 64 * 1024
# In the last events of an answer, and nowhere before: within text the quotes would be escaped.
_LAST: Final = (b'"usage":{', b"[DONE]", b'"error":{')


class Connection(asyncio.Protocol):
    """Bytes of one response, as events (status 200 of a stream) or as a body.

    Reading stops above 256 KiB of undelivered events, so that a slow client slows the engine down and not
    this process's memory. Every failure is kept and raised to whoever waits next.
    """

    def __init__(self) -> None:
        self.parser = ResponseParser()
        # closed: by either side. ended: the other side is gone. answered: it has sent something.
        self.closed = False
        self.ended = False
        self.answered = False
        self._transport: asyncio.Transport | None = None
        self._events: deque[bytes] = deque()
        self._held = 0
        self._paused = False
        self._sse: SseParser | None = None
        self._body: list[bytes] = []
        self._body_limit = ERROR_BODY_LIMIT
        self._truncate = True
        self._error: PeerError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self.saw_done = False
        self._relaxed = False
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._batch: asyncio.TimerHandle | None = None

    # Protocol side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.answered = True
        if self._relaxed:
            self._unread.append(data)
            self._unread_bytes += len(data)
            if self._unread_bytes < _RELAXED_BYTES and not any(mark in data for mark in _LAST):
                if self._batch is None:
                    self._batch = asyncio.get_running_loop().call_later(_RELAXED_S, self._read)
                return
            self._read()
            return
        self._feed(data)

    def _read(self) -> None:
        """Read what came while nobody was in a hurry."""
        if self._batch is not None:
            self._batch.cancel()
            self._batch = None
        data = b"".join(self._unread)
        self._unread.clear()
        self._unread_bytes = 0
        if data:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        if self._error is not None:
            return
        try:
            self._take(self.parser.feed(data))
        except PeerError as error:
            self._fail(error)
            return
        self._wake()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.closed = True
        self._read()
        if self._timer is not None and self._waiter is None:
            self._timer.cancel()
            self._timer = None
        if self._error is None:
            self.ended = True
            try:
                self.parser.feed_eof()
            except PeerError as error:
                self._error = error
        self._wake()

    def _take(self, body: bytes) -> None:
        if not body:
            return
        if self._sse is not None and self.parser.status == 200:
            for event in self._sse.feed(body):
                if event.data == DONE:
                    self.saw_done = True
                else:
                    self._events.append(chunk_of(event))
                    self._held += len(event.data)
            if self._held > _HIGH_WATER and not (self._paused or self.closed) and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
            return
        self._held += len(body)
        if self._held <= self._body_limit:
            self._body.append(body)
        elif not self._truncate:
            raise PeerError("engine_failed", f"the engine's answer is longer than {self._body_limit} bytes")
        else:
            self.abort()

    def _fail(self, error: PeerError) -> None:
        self._error = error
        self.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # The user's side.

    def send(self, request: bytes, *, events: bool, body_limit: int | None = None) -> None:
        """Write the one request. ``body_limit`` None cuts a body short, else a longer one is an error."""
        if self._transport is None or self.closed:
            self.ended = True
            raise PeerError("engine_failed", "the engine has closed its connection", "send the request again")
        self._sse = SseParser() if events else None
        if body_limit is not None:
            self._body_limit, self._truncate = body_limit, False
        self._transport.write(request)

    async def head(self, timeout_s: float) -> None:
        """Wait for the response's head."""
        while not self.parser.head_done:
            if self._error is not None:
                raise self._error
            await self._wait(timeout_s)

    async def body(self, timeout_s: float) -> bytes:
        """Wait for the whole body."""
        while not self.parser.done and not (self._truncate and self._held > self._body_limit):
            if self._error is not None:
                raise self._error
            await self._wait(timeout_s)
        return b"".join(self._body)

    async def event(self, timeout_s: float) -> bytes | None:
        """The next event, None after the last."""
        while not self._events:
            if self.saw_done:
                return None
            if self._error is not None:
                raise self._error
            if self.parser.done:
                return None
            await self._wait(timeout_s)
        event = self._events.popleft()
        self._held -= len(event)
        if self._paused and self._held < _LOW_WATER and self._transport is not None:
            self._paused = False
            if not self.closed:
                self._transport.resume_reading()
        return event

    async def _wait(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        self._deadline = loop.time() + timeout_s
        if self._timer is None:
            self._timer = loop.call_later(timeout_s, self._look, timeout_s)
        try:
            await waiter
        finally:
            self._waiter = None

    def _look(self, timeout_s: float) -> None:
        """One timer serves every wait of a connection: a token comes every few milliseconds."""
        loop = asyncio.get_running_loop()
        left = self._deadline - loop.time() if self._waiter is not None else timeout_s
        if left > 0:
            self._timer = loop.call_later(left, self._look, timeout_s)
        else:
            self._fail(PeerError("engine_failed", f"the engine said nothing for {timeout_s:g} s"))

    def relax(self) -> None:
        """See `EngineStream.relax`."""
        self._relaxed = True

    def abort(self) -> None:
        """Close at once, unsent and unread bytes dropped."""
        self.closed = True
        if self._batch is not None:
            self._batch.cancel()
            self._batch = None
        self._unread.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()


async def open_connection(path: str, timeout_s: float) -> Connection:
    """Connect to the unix socket at ``path``. Raises `PeerError` ``engine_failed``."""
    loop = asyncio.get_running_loop()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        async with asyncio.timeout(timeout_s):
            try:
                sock.connect(path)  # a unix socket connects at once, or its backlog is full
            except BlockingIOError:
                await loop.sock_connect(sock, path)
            _, connection = await loop.create_unix_connection(Connection, sock=sock)
    except (OSError, TimeoutError) as error:
        sock.close()
        raise PeerError(
            "engine_failed", "the engine does not answer on its socket", "send the request again"
        ) from error
    except BaseException:
        sock.close()
        raise
    return connection
