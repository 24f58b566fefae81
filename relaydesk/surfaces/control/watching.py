"""``GET /watch``: a node's updates as lines of JSON until one side ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

from relaydesk.core.codec import encode, schema_fingerprint
from relaydesk.core.view.node_view import Update
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.node_api import WatchClosedError
from relaydesk.surfaces.control.routes import SCHEMA_HEADER

_log: Final = logging.getLogger(__name__)


async def stream(
    request: web.Request,
    updates: AsyncIterator[Update],
    closing: asyncio.Event,
    *,
    keepalive_s: float,
    stall_s: float,
) -> web.StreamResponse:
    """Send updates until the node closes the watch, ``closing`` is set, or the peer goes.

    A peer that takes nothing for ``stall_s`` is cut off. Raises `FaultError` before the first byte where
    the node refuses the watch.
    """
    response = web.StreamResponse(
        headers={
            "Content-Type": "application/x-ndjson",
            "Cache-Control": "no-store",
            SCHEMA_HEADER: schema_fingerprint(),
        }
    )
    feed = _Feed(updates, closing)
    try:
        line = await feed.line(None)
        await response.prepare(request)
        while line is not None:
            async with asyncio.timeout(stall_s):
                await response.write(line)
            line = await feed.line(keepalive_s)
        async with asyncio.timeout(stall_s):
            await response.write(encode({"closed": feed.reason}) + b"\n")
            await response.write_eof()
    except TimeoutError:
        _log.warning("a watcher took nothing for %g s and was cut off", stall_s)
        _cut_off(request)
    except ConnectionError:
        pass  # the watcher left
    except Exception:
        if not response.prepared:
            raise
        # A second response must not be written into the first: the cut tells the watcher enough.
        _log.exception("a watch failed")
        _cut_off(request)
    finally:
        await feed.close()
    return response


class _Feed:
    """The lines of one watch. ``reason`` says why it ended."""

    def __init__(self, updates: AsyncIterator[Update], closing: asyncio.Event) -> None:
        self.reason = ""
        self._updates = updates
        self._closing = spawn(closing.wait(), name="control watch: end")
        # Kept over keep-alives: cancelling an async generator's step would end the generator.
        self._next: asyncio.Task[Update | None] | None = None

    async def line(self, silence_s: float | None) -> bytes | None:
        """The next line, an empty one after ``silence_s``, or None once it ended."""
        if self._next is None:
            self._next = spawn(_next(self._updates), name="control watch: next")
        await asyncio.wait(
            {self._next, self._closing}, timeout=silence_s, return_when=asyncio.FIRST_COMPLETED
        )
        if self._next.done():
            step, self._next = self._next, None
            try:
                update = step.result()
            except WatchClosedError as error:
                self.reason = error.reason
                return None
            if update is None:
                self.reason = "stopped"
                return None
            return encode(update) + b"\n"
        if self._closing.done():
            self.reason = "stopped"
            return None
        return b"\n"

    async def close(self) -> None:
        await cancel_and_wait(self._next)
        await cancel_and_wait(self._closing)
        # The generator frees its place among the watchers now, not when it is collected.
        aclose = getattr(self._updates, "aclose", None)
        if aclose is not None:
            await aclose()


async def _next(updates: AsyncIterator[Update]) -> Update | None:
    return await anext(updates, None)


def _cut_off(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
