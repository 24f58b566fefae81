"""What stands in front of a target and can do something at an exact step of an exchange.

It sees every message that the relay and the target send each other, sealed as they are. It runs in a thread
of its own, so that whoever waits for an answer does not hold it up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self

import aiohttp
from aiohttp import web

from tests.support.wire.events import CONTENT, RECEIPT, parse
from tests.support.wire.server import Server, close

# In their order. What is named after a message is reached when all of it is here and none was passed on.
STEPS: Final = (
    "details",  # the target is asked for its details
    "reserve",  # a reserve has come
    "reserved",  # its answer
    "request",  # a sealed request has come
    "head",  # the head of its answer
    "event",  # the first sealed event
    "receipt",  # the receipt; all of the content was passed on
    "done",  # the end; the receipt was passed on
    "after",  # everything was passed on
)
_PATHS: Final = {
    "/v1/zs/details": ("details", ""),
    "/v1/zs/reserve": ("reserve", "reserved"),
    "/v1/chat/completions": ("request", "head"),
}
# Of one connection alone.
_STAYS: Final = frozenset(("host", "connection", "content-length", "transfer-encoding"))
_NONE: Final = ("User-Agent", "Content-Type", "Accept", "Accept-Encoding")


def kill(pid: int) -> None:
    """End a child at once, and return when it is dead; who started it still has to wait for it."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


class Trigger(Server):
    """A context manager. ``upstream`` is the target's own address; tell it before anybody comes.

    ``arm`` names a step and what is done there, once; from then on, if ``hang_up``, nothing more of that
    message is passed on. ``reached`` is set when it is done. ``steps`` has all that were passed.
    """

    def __init__(self) -> None:
        self.upstream = ""
        self.reached = threading.Event()
        self.steps: list[str] = []
        self._armed: tuple[str, Callable[[], None], bool] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def arm(self, step: str, act: Callable[[], None], *, hang_up: bool) -> None:
        """Do ``act`` when ``step`` is reached next."""
        assert step in STEPS
        self.reached.clear()
        self.steps.clear()
        self._armed = step, act, hang_up

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _begin(self) -> None:
        await self.start()
        self._http = aiohttp.ClientSession(
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_NONE,
            connector=aiohttp.TCPConnector(force_close=True),
            timeout=aiohttp.ClientTimeout(total=120),
        )

    async def _end(self) -> None:
        await self._http.close()
        await self.stop()

    def _reach(self, step: str, request: web.Request) -> None:
        if not step:
            return
        self.steps.append(step)
        if self._armed is None or self._armed[0] != step:
            return
        _, act, hang_up = self._armed
        self._armed = None
        try:
            act()
        finally:
            self.reached.set()
        if hang_up:
            close(request)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        came, answered = _PATHS.get(request.path, ("", ""))
        self._reach(came, request)
        try:
            async with self._http.request(
                request.method,
                self.upstream + request.path_qs,
                data=body or None,
                headers=_passed(request.headers),
                allow_redirects=False,
            ) as got:
                return await self._pass_on(request, got, answered)
        except aiohttp.ClientError:
            close(request)  # the target is gone: so is its connection

    async def _pass_on(
        self, request: web.Request, got: aiohttp.ClientResponse, answered: str
    ) -> web.StreamResponse:
        stream = got.content_type == "text/event-stream"
        first = b"" if stream else await got.read()
        self._reach(answered, request)
        answer = web.StreamResponse(status=got.status, headers=_passed(got.headers))
        await answer.prepare(request)
        if stream:
            await self._events(request, got, answer)
        else:
            await answer.write(first)
            self._reach("after" if answered == "head" else "", request)
        await answer.write_eof()
        return answer

    async def _events(
        self, request: web.Request, got: aiohttp.ClientResponse, answer: web.StreamResponse
    ) -> None:
        rest, begun = b"", False
        async for chunk in got.content.iter_any():
            *blocks, rest = (rest + chunk).split(b"\n\n")
            for block in blocks:
                event = parse(block)
                if event.name == CONTENT and not begun:
                    begun = True
                    self._reach("event", request)
                elif event.name == RECEIPT:
                    self._reach("receipt", request)
                elif event.done:
                    self._reach("done", request)
                await answer.write(block + b"\n\n")
                if event.done:
                    # Now, and not behind the end of the body: whoever has the last word may hang up.
                    self._reach("after", request)
        await answer.write(rest)


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _STAYS}
