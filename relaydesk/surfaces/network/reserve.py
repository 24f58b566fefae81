"""``POST /v1/zs/reserve``: asking to be served (wire §4.3)."""

from __future__ import annotations

from aiohttp import web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.state import Handler

LIMIT = 64 * 1024
MEDIA_TYPE = "application/vnd.zs-reserve+json"


def reserve() -> Handler:
    """The route's handler, of a node that offers no model."""

    async def answer(asked: Asked) -> web.StreamResponse:
        await Body(asked, LIMIT).whole()
        raise WireError("provider_unavailable", "this node serves no model now")

    return answer
