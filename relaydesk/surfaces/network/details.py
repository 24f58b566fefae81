"""``GET /v1/zs/details``: who this node is, its key of the hour, and what it serves (wire §5.1)."""

from __future__ import annotations

from aiohttp import hdrs, web

from relaydesk.engine.relay.details import OwnDetails
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.cors import own_headers
from relaydesk.surfaces.network.state import Handler


def details(own: OwnDetails) -> Handler:
    """The route's handler. ``?model=`` and ``?expand=`` change nothing here: no digests are offered."""

    async def answer(asked: Asked) -> web.StreamResponse:
        headers = own_headers(asked.place)
        headers[hdrs.CONTENT_TYPE] = "application/json"
        return web.Response(body=own.body(), headers=headers)

    return answer
