"""``/healthz`` and ``/readyz``: the only routes that answer without a key, and all they say is yes or no."""

from __future__ import annotations

from aiohttp import web

from relaydesk.surfaces.public.state import HUB


async def healthz(_request: web.Request) -> web.Response:
    """200 as long as the loop runs."""
    return web.json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.Response:
    """200 while new requests are taken, 503 while the node starts or drains."""
    if request.app[HUB].accepting():
        return web.json_response({"status": "ok"})
    return web.json_response({"status": "not accepting requests"}, status=503, headers={"Retry-After": "5"})
