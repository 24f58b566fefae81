"""``POST /v1/chat/completions`` and ``/v1/responses``, sealed: streamed or whole (wire §4.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Final

from aiohttp import HttpVersion11, hdrs, web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.sealed.body import MEDIA_TYPE
from relaydesk.core.relay.sealed.stream import KEEP_ALIVE, STREAM_TYPE
from relaydesk.engine.relay.target.desk import INFERENCE_LIMIT, Target
from relaydesk.engine.relay.target.serve import Answering
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.cors import own_headers
from relaydesk.surfaces.network.sealed import sealed_response
from relaydesk.surfaces.network.state import Handler

# Whoever takes nothing of his stream for this long has left without saying so; until then he holds a slot.
STALL_S: Final = 60.0
# Of requests that are read or checked at once, in bytes: they are held whole, whoever sends them.
HELD_BYTES: Final = 96 * 1_048_576


def inference(target: Target, heartbeat_s: Callable[[], float]) -> Handler:
    """The handler of both routes. A stream is never silent for longer than ``heartbeat_s``."""

    held = _Held()

    async def answer(asked: Asked) -> web.StreamResponse:
        if asked.content_type != MEDIA_TYPE:
            raise WireError("bad_envelope", f"a request is sealed, and sent as {MEDIA_TYPE}")
        wants = STREAM_TYPE in asked.headers.get(hdrs.ACCEPT, "")
        async with AsyncExitStack() as stack:
            async with held.reading(Body(asked, INFERENCE_LIMIT)) as body:
                answering = await stack.enter_async_context(
                    target.answering(asked.place, body, event_stream=wants)
                )
            if answering.stream:
                return await _streamed(asked, answering, heartbeat_s())
            whole = await answering.whole()
            return sealed_response(asked, whole.body, MEDIA_TYPE, whole.status, whole.headers)

    return answer


async def _streamed(asked: Asked, answering: Answering, heartbeat_s: float) -> web.StreamResponse:
    headers = own_headers(asked.place)
    headers.update(answering.headers())
    headers[hdrs.CONTENT_TYPE] = STREAM_TYPE
    headers["X-Accel-Buffering"] = "no"
    response = web.StreamResponse(headers=headers)
    if asked.version >= HttpVersion11:
        response.enable_chunked_encoding()
    # The head goes out before the model has begun: keep-alives fill the time that it takes.
    await response.prepare(asked)
    writer = _Writer(asked, response, heartbeat_s)
    beat = spawn(writer.beat(), name="keep-alive of a sealed stream")
    try:
        async with aclosing(answering.frames()) as frames:
            await writer.send(frames)
    finally:
        await cancel_and_wait(beat)
    await response.write_eof()
    return response


class _Held:
    """The bytes of all requests that are being read or checked."""

    def __init__(self) -> None:
        self._count = 0

    @asynccontextmanager
    async def reading(self, body: Body) -> AsyncIterator[bytes]:
        """A body, whole. Raises `WireError`: ``provider_unavailable`` where too much is held already."""
        pieces: list[bytes] = []
        own = 0
        try:
            async for piece in body.rest(b""):
                own += len(piece)
                self._count += len(piece)
                if self._count > HELD_BYTES:
                    raise WireError("provider_unavailable", "this node reads too many large requests now")
                pieces.append(piece)
            yield b"".join(pieces)
        finally:
            self._count -= own


class _Writer:
    """Writes a stream, fills its silence, and cuts off whoever takes nothing of it."""

    def __init__(self, asked: Asked, response: web.StreamResponse, heartbeat_s: float) -> None:
        self._asked = asked
        self._response = response
        self._heartbeat_s = heartbeat_s
        self._now = asyncio.get_running_loop().time
        self._last = self._now()
        self._writing = False

    async def send(self, frames: AsyncIterator[bytes]) -> None:
        """Write all of them. Raises `ConnectionError` where the client has gone."""
        async for frame in frames:
            await self._write(frame)

    async def beat(self) -> None:
        """Until cancelled."""
        while True:
            quiet = self._now() - self._last
            if self._writing and quiet >= STALL_S:
                self._asked.abort()
                return
            if self._writing:
                await asyncio.sleep(min(STALL_S - quiet, self._heartbeat_s))
            elif quiet >= self._heartbeat_s:
                await self._write(KEEP_ALIVE)
            else:
                await asyncio.sleep(self._heartbeat_s - quiet)

    async def _write(self, data: bytes) -> None:
        self._last = self._now()
        self._writing = True
        await self._response.write(data)
        self._writing = False
