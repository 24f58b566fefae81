"""What the minimal relay and the minimal target share: a small server, and its ways to misbehave."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from typing import NoReturn, Self

from aiohttp import web

MARKER = "X-Zs-Relay-Hop"


@dataclass(frozen=True)
class Seen:
    """One request as it arrived, for searches over what a party could read. ``peer`` is its address."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: str


async def seen(request: web.Request) -> Seen:
    """Reads the request to its end."""
    body, peer = await request.read(), request.transport and request.transport.get_extra_info("peername")
    return Seen(request.method, request.path_qs, dict(request.headers), body, str(peer))


def coded(status: int, code: str, message: str = "no", **headers: str) -> web.Response:
    """An error in the wire's shape (§1.5). An underscore in a header's name stands for a dash."""
    body = json.dumps({"error": {"message": message, "type": code, "code": code}})
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=status, text=body, content_type="application/json", headers=names)


def uncoded(status: int) -> web.Response:
    """What a front door says by itself."""
    return web.Response(status=status, text="<html><h1>no</h1></html>", content_type="text/html")


class Closed(Exception):
    """Raised by ``close``; the server answers nothing more."""


def close(request: web.BaseRequest) -> NoReturn:
    """Break the connection off where it stands."""
    if request.transport is not None:
        request.transport.abort()
    raise Closed


class Server:
    """One catch-all handler on loopback. Use: ``async with``; ``base_url`` holds from then on."""

    base_url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raise NotImplementedError

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self.handle(request)
        except Closed:
            return web.Response()  # for nobody: the connection is gone

    async def start(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; ``port`` 0 takes a free one."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, ssl_context=tls).start()
        self.base_url = f"{'https' if tls else 'http'}://{host}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Close the port and every connection."""
        await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
