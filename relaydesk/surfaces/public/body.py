"""Reading a request's body within its bound, and refusing a larger one before it is sent where possible."""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from aiohttp import hdrs, web

from relaydesk.core.access.credentials import presented
from relaydesk.core.errors import PeerError
from relaydesk.core.text import safe_text
from relaydesk.surfaces.public.routing import PATH_KEY
from relaydesk.surfaces.public.state import HUB

_ENCODINGS: Final = frozenset({"", "gzip", "deflate"})
# A body has this long, and a second more for each so many bytes that came: a slow line gets its 8 MiB
# through, and one that sends a byte now and then holds its connection for half a minute.
GRACE_S: float = 30.0
BYTES_A_SECOND: Final = 16 * 1024
# Nobody sends more than a few. What is left is copied for each, so that hundreds of thousands of empty
# members, which fit into one body, would take hours.
_MEMBERS: Final = 64


def too_large(limit: int) -> PeerError:
    """The refusal of a body over ``limit`` bytes (B22: a client must see the limit)."""
    return PeerError(
        "request_too_large",
        f"the request body is larger than {limit // 1_048_576} MiB",
        "send less, or raise RELAY_MAX_BODY_MB on the hub",
    )


def check_declared(request: web.Request, limit: int) -> None:
    """Refuse by ``Content-Length`` alone, before a byte of the body is read."""
    declared = request.content_length
    if declared is not None and declared > limit:
        raise too_large(limit)


def check_encoding(request: web.Request) -> str:
    """The body's compression, empty for none. One that would not be undone is refused."""
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower().removeprefix("identity")
    if encoding not in _ENCODINGS:
        raise PeerError(
            "unsupported_media_type",
            f"the request body is encoded as {safe_text(encoding, 40)!r}",
            "send it plain, or with gzip or deflate",
        )
    return encoding


async def read_body(request: web.Request, limit: int) -> bytes:
    """The whole body, decompressed, at most ``limit`` bytes of it.

    Raises `PeerError` ``request_too_large``, ``request_timeout``, ``unsupported_media_type``, or
    ``invalid_request`` where it is damaged.
    """
    check_declared(request, limit)
    encoding = check_encoding(request)
    try:
        body = await _receive(request, limit)
    except web.RequestPayloadError:
        raise _damaged() from None
    if encoding and body:
        # Some kilobytes can unfold into the whole limit: that takes tens of milliseconds.
        return await asyncio.to_thread(_unfold, body, encoding, limit)
    return body


async def _receive(request: web.Request, limit: int) -> bytes:
    """The body as it comes over the wire."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    # Else it is taken in pieces of 64 KiB, with the connection paused between them.
    request.content.set_read_chunk_size(limit)
    body = bytearray()
    try:
        async with asyncio.timeout_at(began + GRACE_S) as timer:
            while piece := await request.content.readany():
                body += piece
                if len(body) > limit:
                    raise too_large(limit)
                timer.reschedule(began + GRACE_S + len(body) / BYTES_A_SECOND)
    except TimeoutError:
        raise PeerError(
            "request_timeout",
            f"the request body did not come in time: {len(body)} bytes in {loop.time() - began:.0f} s",
            "send it at once",
        ) from None
    return bytes(body)


def _unfold(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo gzip (all its members, RFC 1952 §2.2) or deflate (zlib, or bare as some clients send it)."""
    window = 31 if encoding == "gzip" else 15
    if encoding == "deflate" and (body[0] & 0x0F != 8 or int.from_bytes(body[:2]) % 31):
        window = -15
    unfolded = bytearray()
    for _ in range(_MEMBERS):
        stream = zlib.decompressobj(window)
        try:
            unfolded += stream.decompress(body, limit + 1 - len(unfolded))
        except zlib.error:
            raise _damaged() from None
        if len(unfolded) > limit:
            raise too_large(limit)
        if not stream.eof:
            raise _damaged()
        body = stream.unused_data if encoding == "gzip" else b""
        if not body:
            return bytes(unfolded)
    raise _damaged()


def _damaged() -> PeerError:
    return PeerError(
        "invalid_request",
        "the request body cannot be read: its compression or its chunks are damaged",
        "send it again, or without compression",
    )


async def answer_expect(request: web.Request) -> None:
    """``Expect: 100-continue``: say go on only where the body will be read (RFC 9110 §10.1.1).

    This runs before the application's middlewares, so it looks at the key itself.
    """
    hub = request.app[HUB]
    if request.headers.get(hdrs.EXPECT, "").lower() != "100-continue":
        return
    if hub.authenticator.check(presented(request.headers.items()), request.get(PATH_KEY, "")) is None:
        return
    if request.content_length is None or request.content_length <= hub.max_body:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # aiohttp takes a write before the headers for the body's beginning.
        request.writer.output_size = 0
