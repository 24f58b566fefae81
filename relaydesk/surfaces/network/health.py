"""``/healthz``: whether somebody is there. Always 200: what runs down is still there, and says so itself.

A balancer that took a draining relay out would answer its callers in its place, without the marker.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import hdrs, web

from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.cors import own_headers
from relaydesk.surfaces.network.state import Handler


def healthz(draining: Callable[[], bool]) -> Handler:
    """The route's handler."""

    async def answer(asked: Asked) -> web.StreamResponse:
        headers = own_headers(asked.place)
        headers[hdrs.CONTENT_TYPE] = "text/plain; charset=utf-8"
        return web.Response(body=b"draining\n" if draining() else b"ok\n", headers=headers)

    return answer
