"""The network listener's connections: aiohttp's own server and parser, with nothing of an application above.

What aiohttp answers by itself, before any handler runs, is answered here: on the relay's path that too must
carry the marker.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from relaydesk.core.access.proxies import is_trusted
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.tls.names import Network
from relaydesk.engine.relay.relaying.clients import Clients, Held, share
from relaydesk.engine.relay.scrub import filled
from relaydesk.surfaces.network.asked import NOTHING, Asked, Headers
from relaydesk.surfaces.network.errors import error_response
from relaydesk.surfaces.network.request_line import MOST_BEGUN, place_in
from relaydesk.surfaces.network.state import Handler, Limits
from relaydesk.surfaces.network.turned_away import TurnedAway

# Bytes that wait for a client before whoever sends to it has to wait.
HIGH_WATER: Final = 64 * 1024
_log: Final = logging.getLogger(__name__)

# Longer than what proxies commonly keep a connection open for; a head has to be whole by then as well.
KEEP_S: Final = 75.0
# How long the answer may take to a client that has closed its sending side. It may wait for it, or be gone:
# TCP says the same of both, and one that is gone must not keep a circuit or a slot for long.
HALF_CLOSED_S: Final = 2.0
# How long what is left of a refused body is read, so that the client sees the refusal.
_LINGER_S: Final = 2.0


class NetworkServer(web.Server):
    """A factory of connections, as ``loop.create_server`` and `serve_tls` take it.

    To stop: close the listeners, then `pre_shutdown` and `shutdown`.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        prefix: str,
        limits: Limits,
        left: Callable[[], None],
        clients: Clients,
        proxies: Sequence[Network],
    ) -> None:
        super().__init__(
            handler,  # type: ignore[arg-type]  # it gets what `_make_request` makes
            handler_cancellation=True,
        )
        self.prefix = prefix
        self.limits = limits
        self.left = left
        self.held = Held()
        self._clients = clients
        self._proxies = proxies
        self._turned_away: set[TurnedAway] = set()

    def let_in(self, transport: asyncio.Transport) -> str | None:
        """The name of the client of a new connection, to be dropped from ``held`` when that is lost.

        Empty for a trusted proxy: its connections are many clients'. None where it was turned away.
        """
        client = self._client_of(transport)
        held = self.held[client] if client else 0
        if len(self.connections) < self.limits.connections and held < share(self.limits.connections):
            if client:
                self.held.add(client)
            return client
        if len(self._turned_away) < self.limits.turned_away:
            TurnedAway(transport, self.prefix, self._turned_away, self.left)
        else:
            transport.abort()
        return None

    def _client_of(self, transport: asyncio.Transport) -> str:
        peer = transport.get_extra_info("peername")
        address = peer[0] if isinstance(peer, tuple) else ""
        return "" if is_trusted(address, self._proxies) else self._clients.name(address)

    def pre_shutdown(self) -> None:
        super().pre_shutdown()
        for each in list(self._turned_away):
            each.abort()

    def __call__(self) -> web.RequestHandler:
        return _Connection(
            self,
            loop=self._loop,
            access_log=None,
            keepalive_timeout=KEEP_S,
            lingering_time=_LINGER_S,
            # Bytes are passed on as they came.
            auto_decompress=False,
            logger=_log,
        )

    def _make_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> Asked:
        assert isinstance(protocol, _Connection)
        headers = protocol.headers_of(message)
        asked = Asked(message, headers, payload, protocol, writer, task, self._loop, self.prefix)
        protocol.begin(asked)
        return asked


class _Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_asked", "_begun", "_body", "_client", "_ends", "_given", "_path", "_place", "_server")

    def __init__(self, server: NetworkServer, **options: Any) -> None:
        super().__init__(server, **options)
        self._server = server
        # Headers of the requests that wait in aiohttp's queue, in its order.
        self._given: deque[Headers] = filled(deque())
        filled(self._messages)
        # What came of a request that is not parsed yet; the path of the last one that was, and the place of
        # what could not be.
        self._begun = b""
        self._path = ""
        self._place = ""
        self._asked: Asked | None = None
        # The body of the last request: while it comes, nothing of it is a request that begins.
        self._body: StreamReader | None = None
        self._ends: asyncio.TimerHandle | None = None
        self._client = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        client = self._server.let_in(cast("asyncio.Transport", transport))
        if client is None:
            return
        self._client = client
        super().connection_made(transport)
        if self.transport is not None:
            # TLS would hold eight times as much for a client that takes nothing.
            self.transport.set_write_buffer_limits(HIGH_WATER)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._asked = None
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None
        if self._client:
            self._server.held.drop(self._client)
            self._client = ""
        self._server.left()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio's may say to stay open
        """Stay open for a while where a request came whole and nothing of its answer went out yet."""
        if self.ssl_context is not None or not self._awaits_answer():
            return False  # TLS has no half that stays open
        self._ends = self._loop.call_later(HALF_CLOSED_S, self.force_close)
        # Nothing more will come: closed after the last answer, instead of waiting for another request.
        self.close()
        return True

    def _awaits_answer(self) -> bool:
        if self._messages:
            return len(self._messages) == 1 and self._messages[0][1].is_eof()
        return self._asked is not None and self._asked.content.is_eof() and not self._asked.begun

    def data_received(self, data: bytes) -> None:
        waiting = len(self._messages)
        between = self._current_request is None and not waiting and not self._body_comes()
        if between and len(self._begun) < MOST_BEGUN:
            self._begun += data[:MOST_BEGUN]
        super().data_received(data)
        for at in range(waiting, len(self._messages)):
            message, payload = self._messages[at]
            if isinstance(message, RawRequestMessage):
                self._begun = b""
                self._body = payload
                self._path = message.path
                self._given.append(message.headers)
                _drop_copies(self._parser, message)
                self._messages[at] = (message._replace(headers=NOTHING, raw_headers=()), payload)
                continue
            self._place = self._place_of_damage(data)
            if self._current_request is not None:
                # The body of the request that is being answered: whoever reads it must not wait for more.
                self._current_request.content.set_exception(web.RequestPayloadError("damaged"))

    def _body_comes(self) -> bool:
        """Whether what comes belongs to the body of a request that may be answered already."""
        if self._body is not None and self._body.is_eof():
            self._body = None
        return self._body is not None

    def _place_of_damage(self, data: bytes) -> str:
        """The place that what cannot be parsed counts to: its own, or that of the request before it."""
        # While a request is being answered nothing is kept of what comes.
        found = place_in(self._begun or data, self._server.prefix, begins=bool(self._begun))
        return found or place_in(f"? {self._path}".encode("latin-1", "replace"), self._server.prefix)

    def begin(self, asked: Asked) -> None:
        """It is answered from now on; aiohttp knows that only some turns of the loop later."""
        self._asked = asked

    def headers_of(self, message: RawRequestMessage) -> Headers:
        """The headers of the request whose turn it is."""
        return self._given.popleft() if message.headers is NOTHING else message.headers

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send it, and keep nothing of it or of the request while the connection rests."""
        done = await super().finish_response(request, resp, start_time)
        self._asked = None
        self._begun = b""
        self._body_comes()
        if isinstance(request, Asked):
            request.forget()
        resp.headers.clear()
        if isinstance(resp, web.Response):
            resp.body = None
        self._server.left()
        return done

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What cannot be parsed, and what nobody caught: never a word of it, and never a 504."""
        if request.writer.output_size:
            raise ConnectionResetError("an answer has begun")
        place = request.place if status >= 500 and isinstance(request, Asked) else self._place
        code = "internal_error" if status >= 500 else "bad_request"
        what = "relaydesk failed on this request" if status >= 500 else "this is no HTTP that can be read"
        response = error_response(place, WireError(code, what))
        response.force_close()
        return response


def _drop_copies(parser: object, message: RawRequestMessage) -> None:
    """Empty the lists in which aiohttp's parser keeps the headers of its last message until the next one.

    It has no call for that, and what it keeps would join a client with a target (see `Asked`). Lists of
    another message, which may have begun already, are left alone.
    """
    for kept in gc.get_referents(parser):
        if (
            isinstance(kept, list)
            and kept
            and tuple(kept) in (message.raw_headers, tuple(message.headers.items()))
        ):
            kept.clear()
