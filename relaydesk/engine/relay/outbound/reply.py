"""A response of another node, its body as it comes over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

from multidict import CIMultiDict

from relaydesk.engine.relay.outbound.connection import Connection
from relaydesk.engine.relay.outbound.unreachable import UnreachableError
from relaydesk.engine.tasks import cancel_and_wait


class Reply:
    """A response whose head has come. Read it to its end or `aclose` it; as a context manager it closes.

    ``headers`` know no case and keep every value of a name.
    """

    def __init__(
        self,
        connection: Connection,
        done: Callable[[Connection], None],
        pump: asyncio.Task[None] | None,
        silence_s: float,
    ) -> None:
        self.status = connection.response.status
        self.headers = CIMultiDict(connection.response.fields)
        self._connection: Connection | None = connection
        self._done = done
        self._pump = pump
        self._silence_s = silence_s

    @property
    def length(self) -> int | None:
        """The body's length where the head says it."""
        stated = self.headers.get("content-length")
        return int(stated) if stated is not None else None

    def whole(self, limit: int) -> bytes | None:
        """The body where all of it is here already and not above ``limit`` bytes; the reply is then read."""
        found = self._connection.complete(limit) if self._connection is not None else None
        if found is not None:
            self._finish()
        return found

    async def next_chunk(self) -> bytes:
        """The next bytes of the body as they came; empty after the last. Raises `UnreachableError`."""
        if self._connection is None:
            return b""
        piece = await self._connection.piece(self._silence_s)
        if not piece:
            self._finish()
        return piece

    async def flow(self, sink: Callable[[bytes], bool]) -> bool:
        """Give the body to ``sink`` the moment it comes: true once it has ended.

        False where ``sink`` returned false, which means that it takes no more for now: call again when it
        does. Raises `UnreachableError`.
        """
        if self._connection is None:
            return True
        ended = await self._connection.flow(sink, self._silence_s)
        if ended:
            self._finish()
        return ended

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises `UnreachableError` where it breaks off."""
        while piece := await self.next_chunk():
            yield piece

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises `UnreachableError`, ``broken`` also where it is longer than ``limit`` bytes.

        Whoever waits for it bounds the time.
        """
        body = bytearray()
        while piece := await self.next_chunk():
            body += piece
            if len(body) > limit:
                await self.aclose()
                raise UnreachableError("broken", f"its answer is longer than {limit} bytes")
        return bytes(body)

    async def aclose(self) -> None:
        """Be done with it. What was not read to its end costs the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            self._done(connection)
        await cancel_and_wait(self._pump)

    def _finish(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._pump is not None and not _succeeded(self._pump):
            # Answered before the request was whole: the rest of it must not look like another request.
            self._pump.cancel()
            connection.abort()
        self._done(connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _succeeded(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
