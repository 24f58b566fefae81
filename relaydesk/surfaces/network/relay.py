"""``POST /v1/zs/relay``: one hop, its answer passed on byte for byte as it comes (wire §1.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from aiohttp import HttpVersion11, hdrs, web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.hop import copied_headers
from relaydesk.engine.relay.outbound.outbound import Reply, UnreachableError
from relaydesk.engine.relay.relaying.forward import Circuit
from relaydesk.surfaces.network.asked import Asked, address_of
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.cors import own_headers
from relaydesk.surfaces.network.server import HIGH_WATER
from relaydesk.surfaces.network.state import Handler, Network

# A body up to this is held, so that it can be sent once more where a pooled connection turns out closed.
_HELD: Final = 64 * 1024
# An answer up to this that has come whole is sent at once.
_WHOLE: Final = 64 * 1024


def relay(network: Network) -> Handler:
    """The route's handler."""

    async def answer(asked: Asked) -> web.StreamResponse:
        probe = network.probed(asked)
        if probe is not None:
            return await probe
        circuit = network.forwarder.open(address_of(asked, network.proxies), list(asked.headers.items()))
        async with circuit:
            reply = await circuit.send(*await _outgoing(asked, circuit, network.limits.max_body))
            return await _pass_on(asked, circuit, reply, network.limits.stall_s)

    return answer


async def _outgoing(
    asked: Asked, circuit: Circuit, limit: int
) -> tuple[bytes | AsyncIterator[bytes], int | None]:
    """The body to send on, and its length where that is known."""
    if asked.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise WireError("relay_build_request", "a compressed request is not relayed")
    body = Body(asked, limit, "relay_build_request")
    if circuit.asked.method == "GET":
        if body.length != 0 and await body.piece():
            raise WireError("relay_build_request", "a GET is relayed without a body")
        return b"", None
    if body.length == 0:
        return b"", None
    first, complete = await body.upto(_HELD)
    return (first, None) if complete else (body.rest(first), body.length)


async def _pass_on(asked: Asked, circuit: Circuit, reply: Reply, stall_s: float) -> web.StreamResponse:
    headers = own_headers(asked.place)
    headers.extend(copied_headers(reply.headers.items()))
    whole = reply.whole(_WHOLE)
    if whole is not None:
        circuit.count(len(whole))
        return web.Response(status=reply.status, body=whole, headers=headers)
    headers["X-Accel-Buffering"] = "no"
    response = web.StreamResponse(status=reply.status, headers=headers)
    if reply.length is not None:
        response.content_length = reply.length
    elif asked.version >= HttpVersion11:
        response.enable_chunked_encoding()
    watch = _Stall(asked, stall_s)
    try:
        await response.prepare(asked)
        while not await reply.flow(_sink(asked, circuit, watch, response.chunked)):
            await asked.writer.drain()
        await response.write_eof()
    except UnreachableError:
        # What came is out already. Only a connection that breaks off says that it was not all.
        asked.abort()
    finally:
        watch.stop()
    return response


def _sink(asked: Asked, circuit: Circuit, watch: _Stall, chunked: bool) -> Callable[[bytes], bool]:
    """Writes to the client at once; false where more waits for it than it should.

    Past aiohttp's writer: a task switch and its bookkeeping for each chunk cost as much as all the rest.
    """
    transport = asked.transport
    if transport is None:
        raise ConnectionResetError("the client is gone")
    write, waiting, gone = transport.write, transport.get_write_buffer_size, transport.is_closing

    def sink(chunk: bytes) -> bool:
        # Between a client's leaving and the end of this task; a write would fail in the target's connection.
        if gone():
            return False
        circuit.count(len(chunk))
        watch.moved()
        write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
        return waiting() <= HIGH_WATER

    return sink


class _Stall:
    """Ends a connection whose client takes nothing: back-pressure alone would hold the circuit for ever."""

    def __init__(self, asked: Asked, stall_s: float) -> None:
        self._asked = asked
        self._stall_s = stall_s
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(stall_s, self._look)

    def moved(self) -> None:
        self._last = self._loop.time()

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        left = self._last + self._stall_s - self._loop.time()
        if left <= 0:
            self._asked.abort()
        else:
            self._timer = self._loop.call_later(left, self._look)
