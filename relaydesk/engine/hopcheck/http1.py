"""One HTTP/1.1 exchange with an edge, on a connection of its own, seen as it comes.

No redirect is followed, nothing decompressed, and the environment's proxies do not count. Every exchange is
bounded in time and in bytes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from relaydesk.core.hopcheck.head import Head, bodiless, parse_head
from relaydesk.core.hopcheck.model import MOST_BODY, Exchange, Headers, Kind
from relaydesk.engine.hopcheck.door import Door
from relaydesk.engine.tasks import cancel_and_wait, spawn

_MOST_HEAD: Final = 64 * 1024
_PIECE: Final = 64 * 1024
# An answer is read to its end up to here: longer ones are nobody's of ours.
_MOST_READ: Final = 1_048_576
CONNECT_S: Final = 6.0
TLS_S: Final = 5.0


class NoAnswerError(Exception):
    """Why nothing came: ``kind`` for programs, ``reason`` for people."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind: Kind = kind
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Send:
    """A request. ``path`` with the door's prefix; ``kept`` bytes of the answer are kept. ``raw`` replaces the
    whole head, for what no client would send."""

    method: str
    path: str
    headers: Headers = ()
    body: int = 0
    kept: int = MOST_BODY
    raw: bytes = b""


@dataclass(slots=True)
class Got:
    """An exchange with the moments at which pieces of the body came, in ms from the head."""

    exchange: Exchange
    pieces: list[tuple[int, int]] = field(default_factory=list)


async def exchange(door: Door, send: Send, context: ssl.SSLContext | None, limit_s: float) -> Got:
    """Send a request and read the answer, whatever comes of it: failures are in the exchange."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    got = Got(Exchange(send.method, door.url(send.path.removeprefix(door.prefix)), _shown(send), send.body))
    kind: Kind = ""
    problem = ""
    try:
        async with asyncio.timeout(limit_s):
            await _exchange(door, send, context, got, loop.time)
    except NoAnswerError as error:
        kind, problem = error.kind, error.reason
    except TimeoutError:
        kind, problem = "timeout", f"not over within {limit_s:g} s"
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        kind, problem = "broken", _broken(error)
    took = round((loop.time() - began) * 1000)
    got.exchange = replace(got.exchange, kind=kind, problem=problem, took_ms=took)
    return got


async def connect(
    door: Door, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection. Raises `NoAnswerError`."""
    options: dict[str, Any] = {}
    if context is not None:
        options = {"ssl": context, "server_hostname": door.name, "ssl_handshake_timeout": TLS_S}
    try:
        async with asyncio.timeout(CONNECT_S):
            return await asyncio.open_connection(door.host, door.port, limit=_MOST_HEAD, **options)
    except TimeoutError as error:
        raise NoAnswerError("timeout", f"no connection within {CONNECT_S:g} s") from error
    except ssl.SSLCertVerificationError as error:
        raise NoAnswerError("tls", f"the certificate is not trusted: {error.verify_message}") from error
    except ssl.SSLError as error:
        why = (error.reason or "it failed").replace("_", " ").lower()
        raise NoAnswerError("tls", f"the TLS handshake failed ({why})") from error
    except ConnectionRefusedError as error:
        raise NoAnswerError("refused", "the connection is refused") from error
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise NoAnswerError("resolve", "the name is not found") from error
        if "handshake" in str(error).lower():
            raise NoAnswerError("tls", f"no TLS handshake within {TLS_S:g} s") from error
        raise NoAnswerError("refused", f"no connection ({error.strerror or 'failed'})") from error


async def close(writer: asyncio.StreamWriter) -> None:
    """Be done with a connection, without waiting for the other end."""
    writer.transport.abort()
    with suppress(OSError, ssl.SSLError):
        await writer.wait_closed()


async def _exchange(
    door: Door, send: Send, context: ssl.SSLContext | None, got: Got, now: Callable[[], float]
) -> None:
    reader, writer = await connect(door, context)
    pump: asyncio.Task[None] | None = None
    try:
        writer.write(send.raw or _head(door, send))
        pump = spawn(_pump(writer, send.body), name="probe-body")
        head = await _read_head(reader)
        got.exchange = replace(got.exchange, status=head.status, headers=head.headers)
        await _read_body(reader, send, head, got, now)
    finally:
        await cancel_and_wait(pump)
        await close(writer)


def _head(door: Door, send: Send) -> bytes:
    lines = [f"{send.method} {send.path} HTTP/1.1", f"Host: {door.authority}"]
    lines += [f"{name}: {value}" for name, value in send.headers]
    if send.body or send.method == "POST":
        lines.append(f"Content-Length: {send.body}")
    lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _shown(send: Send) -> Headers:
    return () if send.raw else send.headers


async def _pump(writer: asyncio.StreamWriter, count: int) -> None:
    """Send so many bytes; an edge that refuses them ends the connection, which is no failure of ours."""
    piece = b"0" * _PIECE
    with suppress(OSError):
        while count > 0:
            writer.write(piece[:count])
            count -= len(piece)
            await writer.drain()


async def _read_head(reader: asyncio.StreamReader) -> Head:
    while True:
        try:
            data = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            reason = (
                "the connection ended in the answer's head" if error.partial else "it closes without a word"
            )
            raise NoAnswerError("broken", reason) from error
        head = parse_head(data[:-4])
        # Interim answers may come before the one that counts.
        if head.status >= 200 or head.status == 101:
            return head


async def _read_body(
    reader: asyncio.StreamReader, send: Send, head: Head, got: Got, now: Callable[[], float]
) -> None:
    if bodiless(send.method, head.status) or head.length == 0:
        return
    began, left = now(), head.length
    kept = bytearray()
    read = 0

    def take(piece: bytes) -> None:
        got.pieces.append((round((now() - began) * 1000), len(piece)))
        if len(kept) < send.kept:
            kept.extend(piece[: send.kept - len(kept)])
            got.exchange = replace(got.exchange, body=bytes(kept))

    while read < _MOST_READ:
        if head.chunked:
            size = int((await reader.readuntil(b"\r\n")).partition(b";")[0].strip(), 16)
            if size == 0:
                return
            piece = await _pieces(reader, size, take)
            await reader.readexactly(2)
            read += piece
            continue
        piece_ = await reader.read(_PIECE if left is None else min(_PIECE, left - read))
        if not piece_:
            if left is not None:
                raise EOFError
            return
        take(piece_)
        read += len(piece_)
        if left is not None and read >= left:
            return


async def _pieces(reader: asyncio.StreamReader, size: int, take: Callable[[bytes], None]) -> int:
    """The bytes of one chunk as they come."""
    left = size
    while left:
        piece = await reader.read(min(left, _PIECE))
        if not piece:
            raise EOFError
        take(piece)
        left -= len(piece)
    return size


def _broken(error: Exception) -> str:
    if isinstance(error, ValueError) and error.args:
        return f"{error.args[0]}"[:120]
    if isinstance(error, ssl.SSLError):
        return "the TLS connection failed"
    return "the connection broke off"


def arrivals(pieces: Sequence[tuple[int, int]], size: int, count: int) -> tuple[int, ...]:
    """When each of ``count`` records of ``size`` bytes was complete, in ms from the head."""
    found: list[int] = []
    have = 0
    for at, length in pieces:
        have += length
        while len(found) < count and have >= (len(found) + 1) * size:
            found.append(at)
    return tuple(found)
