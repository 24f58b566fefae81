"""Answers to the probes of a check of this node's edge: at the relay's own route, and only with a good nonce.

They imitate what a relay passes on: a stream as it sends one, a failure, each of the network's headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import HttpVersion11, hdrs, web

from relaydesk.core.hopcheck.answers import PROBED
from relaydesk.core.hopcheck.asked import HEADER
from relaydesk.core.hopcheck.asked import Asked as Wanted
from relaydesk.core.hopcheck.faults import SENT_HEADERS, TWICE
from relaydesk.core.hopcheck.probes import CHUNKS, GAP_MS
from relaydesk.core.hopcheck.record import chunk
from relaydesk.core.relay.catalogue import WireError
from relaydesk.engine.hopcheck.nonces import Nonces
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.cors import own_headers

Probed = Callable[[Asked], Awaitable[web.StreamResponse] | None]
"""The answer to a probe, None where the request is none."""

_MOST_BODY: Final = 12 * 1_048_576


def probed(nonces: Nonces, most_body: int = _MOST_BODY) -> Probed:
    """What answers the probes that carry one of these nonces."""

    def find(asked: Asked) -> Awaitable[web.StreamResponse] | None:
        value = asked.headers.get(HEADER)
        wanted = nonces.asked(value) if value is not None else None
        return None if wanted is None else _counted(nonces, asked, wanted, most_body)

    return find


async def _counted(nonces: Nonces, asked: Asked, wanted: Wanted, most_body: int) -> web.StreamResponse:
    nonces.open += 1
    try:
        return await _answer(asked, wanted, most_body)
    finally:
        nonces.open -= 1


async def _answer(asked: Asked, wanted: Wanted, most_body: int) -> web.StreamResponse:
    if wanted.mode == "error":
        raise WireError("relay_upstream_unreachable", "this is the answer to a probe of this node's edge")
    if wanted.mode == "stream":
        return await _stream(asked)
    if wanted.mode == "echo":
        body, count = Body(asked, most_body), 0
        while piece := await body.piece():
            count += len(piece)
        return _said(asked, {PROBED: "echo", "received": count})
    if wanted.mode == "silence":
        await asyncio.sleep(wanted.seconds)
        return _said(asked, {PROBED: "silence", "seconds": wanted.seconds})
    response = _said(asked, {PROBED: "headers"})
    for name in SENT_HEADERS:
        response.headers[name] = "1"
    for value in ("one", "two"):
        response.headers.add(TWICE, value)
    return response


def _said(asked: Asked, document: dict[str, object]) -> web.Response:
    headers = own_headers(asked.place)
    headers[hdrs.CONTENT_TYPE] = "application/json"
    return web.Response(body=msgspec.json.encode(document), headers=headers)


async def _stream(asked: Asked) -> web.StreamResponse:
    """Chunks so far apart, sent and flushed one by one as a relay passes a target's on."""
    headers = own_headers(asked.place)
    headers[hdrs.CONTENT_TYPE] = "text/event-stream"
    headers["X-Accel-Buffering"] = "no"
    response = web.StreamResponse(status=200, headers=headers)
    if asked.version >= HttpVersion11:
        response.enable_chunked_encoding()
    await response.prepare(asked)
    for number in range(CHUNKS):
        if number:
            await asyncio.sleep(GAP_MS / 1000)
        await response.write(chunk(number))
    await response.write_eof()
    return response
