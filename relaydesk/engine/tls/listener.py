"""One port that speaks TLS and tells plain HTTP so.

Each accepted socket is looked at, not read (MSG_PEEK): a TLS handshake begins with byte 0x16, everything
else gets a readable 400. Only then does the socket become a transport, TLS from its first byte: upgrading
a plain transport (``start_tls``) would need the bytes already read to be pushed back, which uvloop cannot
do, and would keep two protocols per connection.

Bounds: a socket that sends nothing is closed after 10 s; of more than 256 such sockets the oldest goes,
so that silent peers never keep out one that speaks. The same holds for handshakes and plain answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from relaydesk.engine.tasks import spawn

FIRST_BYTE_S: Final = 10.0
HANDSHAKE_S: Final = 10.0
MAX_WAITING: Final = 256
MAX_HANDSHAKES: Final = 512
MAX_PLAIN: Final = 64
BACKLOG: Final = 1024

_HANDSHAKE: Final = b"\x16"
# At most so many accepts in a row, then handshakes under way get their turn.
_ACCEPT_BATCH: Final = 32
# When the process is out of descriptors the socket stays readable: wait instead of spinning.
_ACCEPT_PAUSE_S: Final = 1.0

_REQUEST_S: Final = 1.0
_LINGER_S: Final = 2.0
_MAX_HEAD: Final = 16 << 10
_MAX_DISCARD: Final = 256 << 10


class _PlainAnswer(asyncio.Protocol):
    """Takes the head of a plain request, answers, and reads on a little.

    Closing with unread bytes would reset the connection, and the client would report that instead of
    showing the answer.
    """

    def __init__(self, hint: Callable[[], bytes], done: Callable[[_PlainAnswer], None]) -> None:
        self._hint = hint
        self._done = done
        self._tail = b""
        self._seen = 0
        self._answered = False
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but are no subclass.
        self._transport = cast("asyncio.Transport", transport)
        self._timer = asyncio.get_running_loop().call_later(_REQUEST_S, self._answer)

    def data_received(self, data: bytes) -> None:
        self._seen += len(data)
        if self._answered:
            if self._seen > _MAX_DISCARD:
                self.abort()
            return
        window = self._tail + data
        self._tail = window[-3:]
        if b"\r\n\r\n" in window or self._seen > _MAX_HEAD:
            self._answer()

    def eof_received(self) -> bool:
        self._answer()
        return False  # the transport closes once the answer is out

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        self._done(self)

    def abort(self) -> None:
        if self._transport:
            self._transport.abort()

    def _answer(self) -> None:
        if self._answered or self._transport is None or self._transport.is_closing():
            return
        self._answered = True
        body = self._hint()
        self._transport.write(
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
            b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        self._transport.write_eof()
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_LINGER_S, self.abort)


class Listener:
    """A bound, listening socket and the connections that are not yet the application's."""

    def __init__(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        sock: socket.socket,
        server_context: ssl.SSLContext,
        hint: Callable[[], bytes],
    ) -> None:
        self.sock = sock
        self._factory = protocol_factory
        self._context = server_context
        self._hint = hint
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._pause: asyncio.TimerHandle | None = None
        # Insertion order is age.
        self._waiting: dict[socket.socket, asyncio.TimerHandle] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._cut: set[asyncio.Task[None]] = set()
        self._plain: dict[_PlainAnswer, None] = {}
        self._resume()

    @property
    def pending(self) -> int:
        """Connections that have not become the application's."""
        return len(self._waiting) + len(self._tasks) + len(self._plain)

    def close(self) -> None:
        """Stop listening and drop what has not become the application's; its connections stay open."""
        if self._closed:
            return
        self._closed = True
        if self._pause:
            self._pause.cancel()
        self._loop.remove_reader(self.sock)
        self.sock.close()
        for conn in list(self._waiting):
            self._drop(conn)
        for task in self._tasks:
            task.cancel()
        for answer in list(self._plain):
            answer.abort()

    async def wait_closed(self) -> None:
        """Return once every handshake that `close` cut off is gone."""
        if ending := [*self._tasks, *self._cut]:
            await asyncio.wait(ending)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self.sock, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPT_BATCH):
            try:
                conn, _peer = self.sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as exc:
                self._loop.call_exception_handler(
                    {"message": "accepting a connection failed", "exception": exc}
                )
                self._loop.remove_reader(self.sock)
                self._pause = self._loop.call_later(_ACCEPT_PAUSE_S, self._resume)
                return
            conn.setblocking(False)
            self._sort(conn)

    def _sort(self, conn: socket.socket) -> None:
        try:
            first = conn.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            self._wait(conn)
            return
        except OSError:
            first = b""
        if not first:
            conn.close()
        elif first == _HANDSHAKE:
            self._start(conn, self._handshake(conn), "tls-handshake")
        else:
            self._start(conn, self._answer_plain(conn), "tls-plain-answer")

    def _wait(self, conn: socket.socket) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._drop(next(iter(self._waiting)))
        self._waiting[conn] = self._loop.call_later(FIRST_BYTE_S, self._drop, conn)
        self._loop.add_reader(conn, self._ready, conn)

    def _ready(self, conn: socket.socket) -> None:
        self._forget(conn)
        self._sort(conn)

    def _forget(self, conn: socket.socket) -> None:
        self._waiting.pop(conn).cancel()
        self._loop.remove_reader(conn)

    def _drop(self, conn: socket.socket) -> None:
        self._forget(conn)
        conn.close()

    def _start(self, conn: socket.socket, coro: Coroutine[Any, Any, None], name: str) -> None:
        if len(self._tasks) >= MAX_HANDSHAKES:
            # Taken out at once: a burst within one turn of the loop must cut as many as it brings.
            oldest = next(iter(self._tasks))
            del self._tasks[oldest]
            self._cut.add(oldest)
            oldest.cancel()
        task = spawn(coro, name=name)
        self._tasks[task] = None
        task.add_done_callback(functools.partial(self._finished, conn))

    def _finished(self, conn: socket.socket, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._cut.discard(task)
        if task.cancelled():
            conn.close()  # the task may have been cut off before its first step
        elif (exc := task.exception()) is not None:
            conn.close()
            self._loop.call_exception_handler(
                {"message": "an accepted connection could not be served", "exception": exc, "task": task}
            )

    async def _handshake(self, conn: socket.socket) -> None:
        # What a peer does wrong in its handshake is no event of ours: scanners do it all day.
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(
                self._factory, conn, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_S
            )

    async def _answer_plain(self, conn: socket.socket) -> None:
        if len(self._plain) >= MAX_PLAIN:
            oldest = next(iter(self._plain))
            del self._plain[oldest]
            oldest.abort()
        answer = _PlainAnswer(self._hint, self._plain_done)
        self._plain[answer] = None
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(lambda: answer, conn)

    def _plain_done(self, answer: _PlainAnswer) -> None:
        self._plain.pop(answer, None)


async def serve_tls(
    protocol_factory: Callable[[], asyncio.BaseProtocol],
    sock: socket.socket,
    server_context: ssl.SSLContext,
    hint: Callable[[], bytes],
) -> Listener:
    """Serve ``protocol_factory`` over TLS on the bound ``sock``, which the listener then owns.

    ``hint`` is the text for who speaks plain HTTP, asked for each time.
    """
    sock.setblocking(False)
    sock.listen(BACKLOG)
    return Listener(protocol_factory, sock, server_context, hint)
