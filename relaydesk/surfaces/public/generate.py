"""One run of the gateway as a response, streamed or whole, whatever the dialect.

Rules of a stream: what is wrong with the request is said by status; a warm model's first event is waited
for up to a second, so that an overflow is a 400 too; then headers go out, silence is filled as the dialect
allows, and what fails later is one error frame, after which nothing follows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from aiohttp import web

from relaydesk.core.errors import FaultError
from relaydesk.core.gateway.away import RELAY_HEADER, TEE_HEADER
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.gateway.work import Plan
from relaydesk.engine.gateway.run import Run
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.surfaces.public.body import read_body
from relaydesk.surfaces.public.middleware import internal_fault
from relaydesk.surfaces.public.state import CALLER, CLIENT, HUB, REQUEST_ID, Hub

_log: Final = logging.getLogger(__name__)

FIRST_EVENT_WAIT_S: Final = 0.9
# A client that takes nothing for this long has left without saying so; until then it holds a slot.
STALL_S: Final = 60.0

_STREAM_HEADERS: Final = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


def generation(
    plan_of: Callable[[bytes], Plan], route: str
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler of a route whose bodies ``plan_of`` understands; ``route`` is its name in records."""

    async def handler(request: web.Request) -> web.StreamResponse:
        hub = request.app[HUB]
        body = await read_body(request, hub.max_body)
        run = await hub.gateway.open(body, plan_of, incoming(request, route))
        return await answer(request, run)

    return handler


def incoming(request: web.Request, route: str) -> Incoming:
    """What the gateway has to know of a request beside its body."""
    headers = request.headers
    return Incoming(
        request[CALLER],
        route,
        request[REQUEST_ID],
        request[CLIENT].address,
        relay=tuple(headers.getall(RELAY_HEADER, ())),
        tee=tuple(headers.getall(TEE_HEADER, ())),
    )


async def answer(request: web.Request, run: Run) -> web.StreamResponse:
    """Answer with what a run brings."""
    hub = request.app[HUB]
    if not run.stream:
        response = web.Response(content_type="application/json")
        response.headers["x-request-id"] = request[REQUEST_ID]

        async def deliver(answer: bytes) -> None:
            response.body = answer
            await response.prepare(request)
            await response.write_eof()

        await run.whole(deliver)
        return response
    return await _streamed(request, hub, run)


async def _streamed(request: web.Request, hub: Hub, run: Run) -> web.StreamResponse:
    frames = run.frames()
    first = spawn(_next(frames), name=f"first event of {run.record.id}")
    try:
        await asyncio.wait([first], timeout=FIRST_EVENT_WAIT_S if run.warm else 0.02)
        if first.done() and (error := first.exception()) is not None:
            raise error
        response = web.StreamResponse(
            headers={
                "Content-Type": _content_type(run.output.media_type),
                **_STREAM_HEADERS,
                "x-request-id": request[REQUEST_ID],
            }
        )
        await response.prepare(request)
        await _send(
            _BeatingWriter(response, hub, request.transport, run.output.heartbeat), run, first, frames
        )
        await response.write_eof()
        return response
    finally:
        try:
            await cancel_and_wait(first)
        finally:
            # Closing the run closes the engine's connection, which is what frees the slot.
            await frames.aclose()
            run.leave()


async def _send(
    writer: _BeatingWriter,
    run: Run,
    first: asyncio.Task[bytes | None],
    frames: AsyncIterator[bytes],
) -> None:
    """Everything behind the headers, so that errors are frames too."""
    beat = spawn(writer.beat(), name=f"heartbeat of {run.record.id}")
    try:
        frame = await first
        while frame is not None:
            await writer.write(frame)
            frame = await anext(frames, None)
    except FaultError as error:
        await writer.write(run.output.error(error.fault))
    except ConnectionError:
        raise
    except Exception:
        _log.exception("request %s failed inside relaydesk", run.record.id)
        await writer.write(run.output.error(internal_fault(run.record.id)))
    finally:
        await cancel_and_wait(beat)


def _content_type(media_type: str) -> str:
    """Text needs its charset said; JSON has none to say, and clients compare its type as a whole."""
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


async def _next(frames: AsyncIterator[bytes]) -> bytes | None:
    return await anext(frames, None)


class _BeatingWriter:
    """A response that is never silent for longer than the heartbeat, and never waits for ever."""

    def __init__(
        self,
        response: web.StreamResponse,
        hub: Hub,
        transport: asyncio.Transport | None,
        heartbeat: bytes,
    ) -> None:
        self._heartbeat = heartbeat
        self._transport = transport
        self._response = response
        self._clock = hub.clock
        self._interval_s = hub.heartbeat_s()
        self._last = self._clock.mono()
        self._writing = False

    async def write(self, frame: bytes) -> None:
        """Write a frame. Raises `ConnectionError` where the client has gone, or counts as gone."""
        self._last = self._clock.mono()
        self._writing = True
        await self._response.write(frame)
        self._writing = False

    async def beat(self) -> None:
        """Fill silence, and cut off a client that takes nothing for `STALL_S`."""
        while True:
            quiet = self._clock.mono() - self._last
            if self._writing:
                if quiet >= STALL_S:
                    _log.info("a client takes nothing and is cut off")
                    if self._transport is not None:
                        # Closing would wait for what the client does not take.
                        self._transport.abort()
                    return
                await asyncio.sleep(min(STALL_S - quiet, self._interval_s))
            elif not self._heartbeat:
                # Nothing to say; a stalled write is still looked for.
                await asyncio.sleep(self._interval_s)
            elif quiet >= self._interval_s:
                await self.write(self._heartbeat)
            else:
                await asyncio.sleep(self._interval_s - quiet)
