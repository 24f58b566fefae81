"""Two nodes for the rows about the hop, each a process: a target that streams, a relay that forwards to it.

``python -m tests.bench.hop_nodes target PEM CA`` prints where it listens and what a directory would list;
``… relay PEM CA LISTED`` where it listens, and so does ``… pipe PEM CA LISTED``: TLS to TLS and nothing
between, the least that a hop can cost. Each ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Callable
from typing import Any, Final, cast
from urllib.parse import parse_qsl

import uvloop

from relaydesk.config.listen import Listen
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.malloc import keep_large_buffers_mapped
from relaydesk.engine.relay.relaying.circuits import Caps
from relaydesk.engine.tls.listener import serve_tls
from relaydesk.surfaces.public.sockets import bind
from tests.support.hop_rig import HopRig, Target

CHUNK: Final = b"event: zs\ndata: " + b"x" * 280 + b"\n\n"
_SHORT: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 512\r\n\r\n" + b"y" * 512
)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Zs-Response-Key: k\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_FRAMED: Final = b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK)


class _Answers(asyncio.Protocol):
    """Answers by path: details, a short answer, or a stream (``?chunks=N&ms=M``; ``hold`` never ends it)."""

    def __init__(self, details: Callable[[], bytes]) -> None:
        self._details = details
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._data) < end + 4 + length:
                return
            path = self._data.split(b" ", 2)[1].decode()
            self._data = self._data[end + 4 + length :]
            self._answer(path)

    def _answer(self, path: str) -> None:
        place, _, query = path.partition("?")
        if place == "/v1/zs/details":
            body = self._details()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        elif place == "/v1/zs/reserve":
            self._transport.write(_SHORT)
        else:
            wanted = dict(parse_qsl(query))
            self._transport.write(_HEAD)
            self._stream(int(wanted["chunks"]), int(wanted["ms"]) / 1000, "hold" in wanted)

    def _stream(self, left: int, pause: float, hold: bool) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_FRAMED)
        if left > 1:
            asyncio.get_running_loop().call_later(pause, self._stream, left - 1, pause, hold)
        elif not hold:
            self._transport.write(b"0\r\n\r\n")


def _context(pem: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    return context


async def _target(pem: str) -> None:
    node = Target(seed=7, tls=_context(pem))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Answers(node.own_details), "127.0.0.1", 0, ssl=_context(pem), backlog=1024
    )
    node.port = server.sockets[0].getsockname()[1]
    await _until_told(node.port, listed=describe(node.listed), details=node.own_details().decode())


async def _relay(pem: str, ca: str, listed: str) -> None:
    keep_large_buffers_mapped()
    trust = ssl.create_default_context(cafile=ca)
    rig = HopRig(trust=trust, caps=Caps(circuits=1024, per_minute=1_000_000))
    rig.directory.listed.append(_listed(listed))
    async with rig:
        sock = bind(Listen("127.0.0.1", 0))[0]
        port = sock.getsockname()[1]
        listener = await serve_tls(rig.server, sock, _context(pem), lambda: b"")
        await _until_told(port)
        listener.close()


class _PipeEnd(asyncio.Protocol):
    """Writes what comes to the other end."""

    def __init__(self, other: asyncio.Transport) -> None:
        self._other = other

    def data_received(self, data: bytes) -> None:
        self._other.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._other.close()


class _Pipe(asyncio.Protocol):
    """Sends the one request of a connection to its inner path at the target."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        self._port = port
        self._trust = trust

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        inner = data.split(b"X-Zs-Relay-Path: ")[1].split(b"\r\n")[0]
        self._task = asyncio.get_running_loop().create_task(self._send(data.replace(b"/v1/zs/relay", inner)))

    async def _send(self, data: bytes) -> None:
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: _PipeEnd(self._transport),
            "127.0.0.1",
            self._port,
            ssl=self._trust,
            server_hostname="localhost",
        )
        transport.write(data)


async def _pipe(pem: str, ca: str, listed: str) -> None:
    trust = ssl.create_default_context(cafile=ca)
    port = int(_listed(listed).base_url.rpartition(":")[2])
    server = await asyncio.get_running_loop().create_server(
        lambda: _Pipe(port, trust), "127.0.0.1", 0, ssl=_context(pem)
    )
    await _until_told(server.sockets[0].getsockname()[1])


async def _until_told(port: int, **more: Any) -> None:
    print(json.dumps({"port": port, **more}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


def describe(listed: Listed) -> str:
    """A listed node as an argument of a command."""
    return json.dumps([*listed.ref, listed.owner, listed.signing, listed.base_url])


def _listed(text: str) -> Listed:
    operator, node, owner, signing, base_url = json.loads(text)
    return Listed(NodeRef(operator, node), owner, signing, base_url)


if __name__ == "__main__":
    if sys.argv[1] == "target":
        uvloop.run(_target(sys.argv[2]))
    else:
        uvloop.run({"relay": _relay, "pipe": _pipe}[sys.argv[1]](*sys.argv[2:5]))
