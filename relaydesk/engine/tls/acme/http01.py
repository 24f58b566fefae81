"""The answers to HTTP-01 challenges: a port that is open only while an order is, and knows nothing else.

Anybody can reach it: it reads one bounded request a connection, answers and closes. Nothing of a request
goes anywhere but into a comparison with the paths that are published.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Mapping
from typing import Final, cast

from relaydesk.config.listen import Listen
from relaydesk.core.errors import EnvError

MAX_OPEN: Final = 64
REQUEST_S: Final = 5.0
_MAX_HEAD: Final = 8 << 10
_BACKLOG: Final = 64


class Http01Port:
    """An async context manager: the port is open within. `publish` what is to be found there."""

    def __init__(self, listen: Listen) -> None:
        self._listen = listen
        self._found: dict[str, bytes] = {}
        self._open: dict[_Connection, None] = {}
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Http01Port:
        """Open the port. Raises `EnvError` ``tls_failed`` where it cannot be opened."""
        loop = asyncio.get_running_loop()
        try:
            if self._listen.host:
                self._server = await loop.create_server(
                    self._accept, self._listen.host, self._listen.port, backlog=_BACKLOG
                )
            else:
                self._server = await loop.create_server(
                    self._accept, sock=_every_interface(self._listen.port)
                )
        except OSError as error:
            raise _refusal(error, self._listen) from error
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in tuple(self._open):
            connection.abort()

    async def publish(self, place: str, value: str) -> None:
        """Answer a GET of the path ``place`` with ``value``."""
        self._found[place] = value.encode()

    def _accept(self) -> asyncio.Protocol:
        if len(self._open) >= MAX_OPEN:
            next(iter(self._open)).abort()
        return _Connection(self._found, self._open)


class _Connection(asyncio.Protocol):
    """One request, one answer."""

    def __init__(self, found: Mapping[str, bytes], peers: dict[_Connection, None]) -> None:
        self._found = found
        self._peers = peers
        self._head = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but are no subclass.
        self._transport = cast("asyncio.Transport", transport)
        self._peers[self] = None
        self._timer = asyncio.get_running_loop().call_later(REQUEST_S, self.abort)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._peers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        self._head += data
        if b"\n\r\n" not in self._head and b"\n\n" not in self._head:
            if len(self._head) > _MAX_HEAD:
                self.abort()
            return
        self._transport.write(answer(bytes(self._head), self._found))
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection."""
        self._peers.pop(self, None)
        if self._transport is not None:
            self._transport.abort()


def answer(head: bytes, found: Mapping[str, bytes]) -> bytes:
    """The whole response to a request's head."""
    method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
    path = rest.partition(b" ")[0].decode("ascii", "replace")
    body = found.get(path) if method == b"GET" else None
    status, text = (b"200 OK", body) if body is not None else (b"404 Not Found", b"")
    return (
        b"HTTP/1.1 %b\r\nContent-Type: application/octet-stream\r\nX-Content-Type-Options: nosniff\r\n"
        b"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
        % (status, len(text), text)
    )


def _every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT:
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)


def _refusal(error: OSError, listen: Listen) -> EnvError:
    proxy = "or let that program pass /.well-known/acme-challenge/ on to another port and name it"
    if error.errno == errno.EADDRINUSE:
        why = f"port {listen.port} is in use by another program"
        hint = f"stop it, {proxy} in RELAY_ACME_HTTP_LISTEN"
    elif error.errno == errno.EACCES:
        why = f"port {listen.port} may only be opened by root"
        hint = "grant CAP_NET_BIND_SERVICE (`relaydesk service install` does), or forward port 80 to another"
        hint += " port and name it in RELAY_ACME_HTTP_LISTEN"
    else:
        why = f"RELAY_ACME_HTTP_LISTEN={listen} cannot be opened ({error.strerror or error})"
        hint = "use an address of this machine, or :PORT for every interface"
    return EnvError("tls_failed", why, hint, param="RELAY_ACME_HTTP_LISTEN")
