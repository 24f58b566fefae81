"""Asking a worker over its unix socket.

A connection carries one request: after a streamed answer the engine closes it though it says it keeps it.
Connections are opened ahead, so that a request does not wait for one; each is used once.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from relaydesk.core.errors import PeerError
from relaydesk.core.ports import Clock
from relaydesk.engine.infer.connection import Connection, open_connection
from relaydesk.engine.infer.engine import EngineReply
from relaydesk.engine.tasks import cancel_and_wait, spawn

REPLY_LIMIT: Final = 64 * 1024 * 1024
# The engine's server drops an unused connection after 5 s; a request must not meet that moment.
_IDLE_LIFE_S: Final = 4.0
_TARGET: Final = re.compile(r"/[A-Za-z0-9/_.?=&-]*")


class WorkerStream:
    """`EngineStream` over one connection."""

    def __init__(
        self, connection: Connection, error_body: bytes, idle_timeout_s: float, ends_with_done: bool
    ) -> None:
        self.error_body = error_body
        self._connection = connection
        self._idle_timeout_s = idle_timeout_s
        self._ends_with_done = ends_with_done

    @property
    def status(self) -> int:
        return self._connection.parser.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._connection.parser.headers

    def relax(self) -> None:
        self._connection.relax()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self.status != 200:
            raise StopAsyncIteration
        event = await self._connection.event(self._idle_timeout_s)
        if event is not None:
            return event
        self._connection.abort()
        if self._ends_with_done and not self._connection.saw_done:
            raise PeerError("engine_failed", "the engine ended its answer early", "send the request again")
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.abort()

    async def aclose(self) -> None:
        self._connection.abort()


class EngineClient:
    """`Engine` over a worker's unix socket.

    ``ahead`` connections wait unused while requests come (0 opens each when it is needed); they lapse after
    4 s without one. ``idle_timeout_s`` bounds the silence within an answer, ``connect_timeout_s`` the
    opening. `aclose` closes what waits; answers in progress belong to their streams.
    """

    def __init__(
        self,
        socket_path: str,
        key: str,
        clock: Clock,
        *,
        ahead: int = 2,
        connect_timeout_s: float = 5.0,
        idle_timeout_s: float = 600.0,
    ) -> None:
        self._path = socket_path
        self._clock = clock
        self._ahead = ahead
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._spare: deque[tuple[float, Connection]] = deque()
        self._refill: asyncio.Task[None] | None = None
        self._closed = False
        self._fields = (
            " HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {key}\r\nContent-Length: "
        )

    async def stream(self, path: str, body: bytes, *, ends_with_done: bool = True) -> WorkerStream:
        connection = await self._ask(self._request("POST", path, body), events=True)
        try:
            error_body = b""
            if connection.parser.status != 200:
                error_body = await connection.body(self._idle_timeout_s)
                connection.abort()
        except BaseException:
            connection.abort()
            raise
        return WorkerStream(connection, error_body, self._idle_timeout_s, ends_with_done)

    async def json(self, method: str, path: str, body: bytes | None = None) -> EngineReply:
        request = self._request(method, path, body or b"")
        connection = await self._ask(request, events=False, body_limit=REPLY_LIMIT)
        try:
            whole = await connection.body(self._idle_timeout_s)
        finally:
            connection.abort()
        return EngineReply(connection.parser.status, connection.parser.headers, whole)

    async def health(self) -> bool:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                reply = await self.json("GET", "/health")
        except (PeerError, TimeoutError):
            return False
        return reply.status == 200

    async def aclose(self) -> None:
        self._closed = True
        await cancel_and_wait(self._refill)
        while self._spare:
            self._spare.popleft()[1].abort()

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        if not _TARGET.fullmatch(path):
            raise ValueError(f"not a path of an engine: {path!r}")
        return f"{method} {path}{self._fields}{len(body)}\r\n\r\n".encode("ascii") + body

    async def _ask(self, request: bytes, *, events: bool, body_limit: int | None = None) -> Connection:
        """Send ``request`` and wait for the head.

        A connection opened ahead may have died unseen. Where it ends without one byte of an answer, the
        request goes once more over a new one.
        """
        connection = self._take_spare()
        if connection is not None:
            try:
                return await self._send(connection, request, events, body_limit)
            except PeerError:
                if connection.answered or not connection.ended:
                    raise
        connection = await open_connection(self._path, self._connect_timeout_s)
        return await self._send(connection, request, events, body_limit)

    async def _send(
        self, connection: Connection, request: bytes, events: bool, body_limit: int | None
    ) -> Connection:
        try:
            connection.send(request, events=events, body_limit=body_limit)
            await connection.head(self._idle_timeout_s)
        except BaseException:
            connection.abort()
            raise
        self._top_up()
        return connection

    def _take_spare(self) -> Connection | None:
        while self._spare:
            opened, connection = self._spare.popleft()
            if not connection.closed and self._clock.mono() - opened < _IDLE_LIFE_S:
                return connection
            connection.abort()
        return None

    def _top_up(self) -> None:
        if self._closed or len(self._spare) >= self._ahead or (self._refill and not self._refill.done()):
            return
        self._refill = spawn(self._open_spares(), name="engine-connections")

    async def _open_spares(self) -> None:
        while len(self._spare) < self._ahead:
            try:
                connection = await open_connection(self._path, self._connect_timeout_s)
            except PeerError:
                return  # the next request will say so
            self._spare.append((self._clock.mono(), connection))
