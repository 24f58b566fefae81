"""A request's body, as it comes: bounded in bytes and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import hdrs, web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.surfaces.network.asked import Asked

# A body has this long, and a second more for each so many bytes that came. Only waiting for it counts.
GRACE_S: float = 30.0
# Until its first byte less: who has a body begins to send it, and of a relayed one a circuit waits meanwhile.
FIRST_S: float = 10.0
BYTES_A_SECOND: Final = 16 * 1024


class Body:
    """The body of ``asked``, at most ``limit`` bytes.

    Reading raises `WireError` ``request_too_large`` or ``request_timeout``, and ``unreadable``'s code where
    the body is damaged. The declared length is looked at before a byte is read.
    """

    def __init__(self, asked: Asked, limit: int, unreadable: str = "bad_envelope") -> None:
        self._asked = asked
        self._limit = limit
        self._unreadable = unreadable
        self._read = 0
        self._waited = 0.0
        self.length = asked.content_length
        if self.length is not None and self.length > limit:
            raise too_large(limit)
        if not asked.body_exists:
            self.length = 0

    async def piece(self) -> bytes:
        """The next bytes; empty after the last."""
        if not self._read and self._asked.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
            await _go_on(self._asked)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._left()):
                piece = await self._asked.content.readany()
        except TimeoutError:
            raise WireError("request_timeout", "the request body did not come in time") from None
        except web.RequestPayloadError:
            raise WireError(self._unreadable, "the request body cannot be read") from None
        self._waited += loop.time() - began
        self._read += len(piece)
        if self._read > self._limit:
            raise too_large(self._limit)
        return piece

    def _left(self) -> float:
        if not self._read:
            return min(FIRST_S, GRACE_S)
        return GRACE_S + self._read / BYTES_A_SECOND - self._waited

    async def upto(self, count: int) -> tuple[bytes, bool]:
        """The first ``count`` bytes or somewhat more, and whether that was all."""
        found = b""
        while len(found) < count:
            piece = await self.piece()
            if not piece:
                return found, True
            found = found + piece if found else piece
        return found, self._asked.content.at_eof()

    async def whole(self) -> bytes:
        """All of it."""
        pieces = [piece async for piece in self.rest(b"")]
        return b"".join(pieces)

    async def rest(self, first: bytes) -> AsyncIterator[bytes]:
        """``first``, and then what has not been read yet."""
        if first:
            yield first
        while piece := await self.piece():
            yield piece


def too_large(limit: int) -> WireError:
    """The refusal of a body over ``limit`` bytes."""
    size = f"{limit // 1_048_576} MiB" if limit >= 1_048_576 else f"{limit // 1024} KiB"
    return WireError("request_too_large", f"the request body is larger than {size}")


async def _go_on(asked: Asked) -> None:
    """Tell a client that waits for it to send the body (RFC 9110 §10.1.1)."""
    await asked.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    # aiohttp takes a write before the headers for the body's beginning.
    asked.writer.output_size = 0
