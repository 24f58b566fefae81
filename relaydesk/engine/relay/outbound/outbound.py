"""HTTP to other nodes: from relay to target, from caller to relay, and for directories.

What comes back is passed on as it came: no redirect is followed, no cookie kept, nothing decompressed, and
the environment's proxies do not count. Only what the caller gives is sent, with ``Host``, the body's length
and ``Accept-Encoding: identity`` beside it: no ``User-Agent``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.engine.relay.outbound.connection import Connection
from relaydesk.engine.relay.outbound.dial import Resolve, dial, system_resolve
from relaydesk.engine.relay.outbound.reply import Reply
from relaydesk.engine.relay.outbound.request import Origin, framed, head_of, parts_of
from relaydesk.engine.relay.outbound.unreachable import UnreachableError
from relaydesk.engine.tasks import cancel_and_wait, spawn

__all__ = ["Outbound", "Reply", "UnreachableError"]

# Longest silence of a body that is under way. Nodes send comments meanwhile, well below a minute.
SILENCE_S: Final = 600.0
# Connections that rest: of one node, and of all.
REST_EACH: Final = 32
REST_ALL: Final = 256
# Below what servers commonly keep a silent connection for, so that few are found closed.
REST_S: Final = 30.0
_FOREVER_S: Final = 86_400.0


class Outbound:
    """A client with a bounded pool of connections, which all of one node's purposes share.

    ``tls`` gives the context that decides whom to trust; ``allow_private`` lets it dial addresses that are
    not public and speak plain HTTP (labs). ``source`` is the address of this machine that it connects from,
    empty where the system chooses. ``left`` is told whenever a connection ends: what went over it is then in
    memory that is free.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        allow_private: Callable[[], bool],
        tls: Callable[[], ssl.SSLContext],
        resolve: Resolve = system_resolve,
        source: str = "",
        left: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._left = left
        self._allow_private = allow_private
        self._tls = tls
        self._resolve = resolve
        self._source = source
        # The last of a list rested the shortest.
        self._resting: dict[Origin, list[Connection]] = {}
        self._count = 0
        self._busy: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def send(
        self,
        url: str,
        method: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | AsyncIterator[bytes] = b"",
        *,
        head_s: float,
        length: int | None = None,
        silence_s: float = SILENCE_S,
    ) -> Reply:
        """Send one request and wait for the head of its response.

        ``head_s``: seconds from the end of the request to the head of the response. ``length`` is that of an
        iterated body where it is known. A request goes out a second time only where the first was on a
        resting connection that turned out to be closed, nothing came back, and the body is ``bytes``.
        Raises `UnreachableError`, or `ValueError` where no request can be made of this.
        """
        origin, path = parts_of(url)
        if origin.scheme == "http" and not self._allow_private():
            raise UnreachableError("refused_address", "its address is no https:// address")
        whole = isinstance(body, bytes)
        head = head_of(origin, method, path, headers, len(body) if isinstance(body, bytes) else length)
        # A body that cannot be repeated never meets a connection that may be closed already.
        connection = self._take(origin) if whole else None
        while connection is not None and isinstance(body, bytes):
            try:
                return await self._ask(connection, origin, head, body, None, head_s, silence_s)
            except UnreachableError as error:
                if connection.touched or error.kind != "broken":
                    raise
            connection = None
        connection = await self._dial(origin)
        if isinstance(body, bytes):
            return await self._ask(connection, origin, head, body, None, head_s, silence_s)
        return await self._ask(connection, origin, head, b"", framed(body, length), head_s, silence_s)

    async def aclose(self) -> None:
        """Close every connection; nothing is sent any more."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for connection in [each for some in self._resting.values() for each in some] + list(self._busy):
            connection.on_idle_end = None
            connection.fail(UnreachableError("broken", "this node is stopping"))
        self._resting.clear()
        self._busy.clear()
        self._count = 0

    @property
    def resting(self) -> int:
        """Connections in the pool."""
        return self._count

    # One request.

    async def _ask(
        self,
        connection: Connection,
        origin: Origin,
        head: bytes,
        body: bytes,
        pieces: AsyncIterator[bytes] | None,
        head_s: float,
        silence_s: float,
    ) -> Reply:
        self._busy.add(connection)
        pump: asyncio.Task[None] | None = None
        try:
            connection.begin(head + body)
            if pieces is not None:
                pump = spawn(_pump(connection, pieces, head_s), name="request-body")
                await self._until_sent(connection, pump)
            await connection.head(head_s)
        except BaseException:
            self._busy.discard(connection)
            self._end(connection)
            await cancel_and_wait(pump)
            raise
        return Reply(connection, lambda done: self._give_back(origin, done), pump, silence_s)

    @staticmethod
    async def _until_sent(connection: Connection, pump: asyncio.Task[None]) -> None:
        """Return once the body is sent or an answer comes before that. Raises what the pump raised."""
        answered = spawn(connection.head(_FOREVER_S), name="early-answer")
        try:
            await asyncio.wait([pump, answered], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(answered)
        if pump.done() and not connection.response.head_done:
            pump.result()

    async def _dial(self, origin: Origin) -> Connection:
        if self._closed:
            raise UnreachableError("broken", "this node is stopping")
        context = self._tls() if origin.scheme == "https" else None
        return await dial(
            origin.host.strip("[]"),
            origin.port,
            context,
            allow_private=self._allow_private(),
            resolve=self._resolve,
            source=self._source,
        )

    # The pool.

    def _take(self, origin: Origin) -> Connection | None:
        some = self._resting.get(origin)
        while some:
            connection = some.pop()
            self._count -= 1
            connection.on_idle_end = None
            if not some:
                del self._resting[origin]
            if connection.resting:
                return connection
            self._end(connection)
        return None

    def _give_back(self, origin: Origin, connection: Connection) -> None:
        self._busy.discard(connection)
        connection.rest()
        some = self._resting.setdefault(origin, [])
        if not connection.resting or self._closed or len(some) >= REST_EACH or self._count >= REST_ALL:
            self._end(connection)
            if not some:
                del self._resting[origin]
            return
        connection.rests_since = self._clock.mono()
        connection.on_idle_end = lambda ended: self._ended(origin, ended)
        some.append(connection)
        self._count += 1
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(REST_S / 2, self._close_old)

    def _ended(self, origin: Origin, connection: Connection) -> None:
        connection.on_idle_end = None
        some = self._resting.get(origin, [])
        if connection in some:
            some.remove(connection)
            self._count -= 1
            if not some:
                del self._resting[origin]
        self._left()

    def _end(self, connection: Connection) -> None:
        connection.abort()
        self._left()

    def _close_old(self) -> None:
        self._sweep = None
        before = self._clock.mono() - REST_S
        for origin, some in list(self._resting.items()):
            for connection in [each for each in some if each.rests_since <= before]:
                self._ended(origin, connection)
                connection.abort()
        if self._count:
            self._sweep = asyncio.get_running_loop().call_later(REST_S / 2, self._close_old)


async def _pump(connection: Connection, pieces: AsyncIterator[bytes], stall_s: float) -> None:
    """Send a body piece by piece, no faster than the node takes it."""
    try:
        async for piece in pieces:
            connection.write(piece)
            try:
                async with asyncio.timeout(stall_s):
                    await connection.drained()
            except TimeoutError as error:
                raise UnreachableError("timeout", f"it took nothing for {stall_s:g} s") from error
    except Exception:
        connection.fail(UnreachableError("broken", "the request's body broke off"))
        raise
