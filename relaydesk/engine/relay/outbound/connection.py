"""One connection to another node: requests go out one after the other, raw body bytes come in."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from relaydesk.engine.relay.outbound.http1 import NodeResponse
from relaydesk.engine.relay.outbound.unreachable import UnreachableError
from relaydesk.engine.relay.scrub import filled

# Of bytes that nobody has taken yet, in either direction.
HIGH_WATER: Final = 64 * 1024
LOW_WATER: Final = 16 * 1024


class Connection(asyncio.Protocol):
    """Reading stops above 64 KiB that were not taken, so that a slow client slows the node down and not this
    process's memory. Every failure is kept and raised to whoever waits next.

    ``touched``: something of the present response has come. ``on_idle_end`` is told when a connection that
    rests between two requests is over.
    """

    def __init__(self) -> None:
        self.response = NodeResponse()
        self.touched = False
        self.closed = False
        self.on_idle_end: Callable[[Connection], None] | None = None
        self.rests_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pieces: deque[bytes] = filled(deque())
        # Where the body goes at once, and whether it takes more; None while it is fetched piece by piece.
        self._sink: Callable[[bytes], bool] | None = None
        self._sink_full = False
        self._silence_s = 0.0
        self._held = 0
        self._reading = True
        self._full: asyncio.Future[None] | None = None
        self._error: UnreachableError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._patience = ""

    # Protocol side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but are no subclass.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        # TLS has a buffer of its own, which would hold four times as much.
        if (limit_tls := getattr(transport, "set_read_buffer_limits", None)) is not None:
            limit_tls(HIGH_WATER, LOW_WATER)

    def data_received(self, data: bytes) -> None:
        if self.on_idle_end is not None:
            self.abort()  # an answer to nothing
            return
        self.touched = True
        if self._error is not None:
            return
        try:
            body = self.response.feed(data)
        except UnreachableError as error:
            self.fail(error)
            return
        if body and self._sink is not None:
            self._deadline = self._loop.time() + self._silence_s
            if self._sink(body):
                if self.response.done:
                    self._wake()
                return
            self._sink, self._sink_full = None, True
            self._pause()
        elif body:
            self._pieces.append(body)
            self._held += len(body)
            if self._held > HIGH_WATER:
                self._pause()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._stop_timer()
        if self._error is None:
            try:
                self.response.feed_eof()
            except UnreachableError as error:
                self._error = error
                error.__cause__ = exc
        if self._full is not None and not self._full.done():
            self._full.set_result(None)
        self._wake()
        if self.on_idle_end is not None:
            self.on_idle_end(self)

    def pause_writing(self) -> None:
        self._full = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._full is not None and not self._full.done():
            self._full.set_result(None)
        self._full = None

    # The user's side.

    @property
    def resting(self) -> bool:
        """Whether it waits for another request, and may have one."""
        return self.response.reusable and not self._pieces and not self.closed and self._error is None

    def begin(self, data: bytes) -> None:
        """Write a request, or the beginning of one. Raises `UnreachableError` where it is closed."""
        self.response = NodeResponse()
        self.touched = False
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write more of the request."""
        if self._error is not None:
            raise self._error
        if self._transport is None or self.closed:
            raise UnreachableError("broken", "the connection was closed")
        self._transport.write(data)

    async def drained(self) -> None:
        """Return once the node takes more. Raises nothing: the next write does."""
        if self._full is not None:
            await asyncio.shield(self._full)

    async def head(self, timeout_s: float) -> None:
        """Wait for the response's head. Raises `UnreachableError`."""
        while not self.response.head_done:
            if self._error is not None:
                raise self._error
            await self._wait(timeout_s, "no answer")

    async def piece(self, timeout_s: float) -> bytes:
        """The next bytes of the body, all that are there; empty after the last. Raises `UnreachableError`."""
        while not self._pieces:
            if self.response.done:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait(timeout_s, "nothing more")
        return self._take()

    async def flow(self, sink: Callable[[bytes], bool], silence_s: float) -> bool:
        """Give the body to ``sink`` the moment it comes, without a task in between: true once it has ended.

        False where ``sink`` returned false, which means that it takes no more for now: nothing is read until
        the next call. Raises `UnreachableError`.
        """
        self._sink_full = False
        if self._pieces and not sink(self._take()):
            return False
        self._resume()
        self._sink, self._silence_s = sink, silence_s
        try:
            while not self.response.done:
                if self._sink_full:
                    return False
                if self._error is not None:
                    raise self._error
                await self._wait(silence_s, "nothing more")
        finally:
            self._sink = None
        return not self._sink_full

    def complete(self, limit: int) -> bytes | None:
        """What nobody has taken, where no more comes and it is at most ``limit`` bytes; else None."""
        if not self.response.done or self._held > limit:
            return None
        return self._take()

    def _take(self) -> bytes:
        piece = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        self._resume()
        return piece

    def _pause(self) -> None:
        if self._reading and self._transport is not None and not self.closed:
            self._reading = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        if not self._reading and self._transport is not None:
            self._reading = True
            if not self.closed:
                self._transport.resume_reading()

    def fail(self, error: UnreachableError) -> None:
        """End it for this reason."""
        self._error = self._error or error
        self.abort()
        self._wake()

    def rest(self) -> None:
        """No request is under way: its timer goes."""
        self._stop_timer()

    def abort(self) -> None:
        """Close at once; unsent and unread bytes are dropped."""
        self.closed = True
        self._stop_timer()
        self._pieces.clear()
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self, timeout_s: float, lacking: str) -> None:
        waiter = self._waiter = self._loop.create_future()
        deadline = self._loop.time() + timeout_s
        self._deadline, self._patience = deadline, f"{lacking} for {timeout_s:g} s"
        if self._timer is None or self._timer.when() > deadline:
            self._stop_timer()
            self._timer = self._loop.call_at(deadline, self._look)
        try:
            await waiter
        finally:
            self._waiter = None

    def _look(self) -> None:
        """One timer serves every wait of a connection: a piece comes every few milliseconds."""
        self._timer = None
        if self._waiter is None:
            return
        if self._deadline > self._loop.time():
            self._timer = self._loop.call_at(self._deadline, self._look)
        else:
            self.fail(UnreachableError("timeout", self._patience))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
