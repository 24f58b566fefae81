"""One request to the network listener, and forgetting it."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy

from relaydesk.core.access.proxies import client_of
from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.core.tls.names import Network
from relaydesk.engine.relay.scrub import filled

Headers = CIMultiDictProxy[str]

NOTHING: Final[Headers] = CIMultiDictProxy(CIMultiDict())
_SLASHES: Final = re.compile("//+")


class Asked(web.BaseRequest):
    """A request whose headers are at hand only until it is answered.

    aiohttp keeps a connection's last request until the next one comes. A relay's would join the client's
    address with a target for as long as that connection rests (design §6), so its headers are kept here
    alone, and `forget` drops them.

    ``place`` is the path as routes have it; ``rest`` the last segment of a route that ends in one.
    """

    def __init__(
        self,
        message: RawRequestMessage,
        headers: Headers,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
        loop: asyncio.AbstractEventLoop,
        prefix: str,
    ) -> None:
        super().__init__(message, payload, protocol, writer, task, loop)
        self._headers = headers
        # Of CONNECT aiohttp takes what is asked for as a host's name.
        path = message.path if message.method == "CONNECT" else self._rel_url.raw_path
        self.place = place_of(path, prefix)
        self.rest = ""

    @property
    def begun(self) -> bool:
        """Whether something of an answer is out already."""
        return bool(self.writer.output_size)

    def abort(self) -> None:
        """End the connection, so that nobody takes what was sent for the whole answer."""
        if self.transport is not None:
            self.transport.abort()

    def forget(self) -> None:
        """Drop what was asked."""
        self._headers = NOTHING
        self._cache.clear()
        # The queue of a body that was read to its end lasts as long as the connection rests.
        queue = getattr(self._payload, "_buffer", None)
        if isinstance(queue, deque) and not queue:
            filled(queue)


def address_of(asked: Asked, proxies: Sequence[Network]) -> str:
    """Who counts as the client for the limits of one address, and for nothing else."""
    if not proxies:
        return asked.remote or ""
    return client_of(asked.remote or "", asked.scheme, asked.headers.items(), proxies).address


def place_of(path: str, prefix: str) -> str:
    """A path without the prefix, and without slashes that mean nothing.

    However the relay's path is percent-encoded, it is the relay's: a proxy in front may have done it. Of all
    others the encoding stays, because a slash in a model's name is none of the path's.
    """
    place = _bare(path, prefix)
    if "%" in place and _bare(unquote(place), prefix) == RELAY_PATH:
        return RELAY_PATH
    return place


def _bare(path: str, prefix: str) -> str:
    if "//" in path:
        path = _SLASHES.sub("/", path)
    if prefix and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("/", ""):
        path = path[len(prefix) :]
    return path.rstrip("/") or "/"
