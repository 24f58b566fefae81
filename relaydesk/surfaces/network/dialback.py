"""``POST /v1/zs/dialback``: look at the node that asks, from here. Ours, and opt-in (design §6)."""

from __future__ import annotations

from aiohttp import hdrs, web

from relaydesk.core.hopcheck.dialback import MOST_ASK
from relaydesk.engine.hopcheck.dialback import DialbackDesk
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.cors import own_headers
from relaydesk.surfaces.network.state import Handler


def dial_back(desk: DialbackDesk) -> Handler:
    """The route's handler."""

    async def answer(asked: Asked) -> web.StreamResponse:
        body = await desk.answer(await Body(asked, MOST_ASK, "bad_request").whole())
        headers = own_headers(asked.place)
        headers[hdrs.CONTENT_TYPE] = "application/json"
        return web.Response(body=body, headers=headers)

    return answer
