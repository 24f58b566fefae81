"""``POST /v1/messages/count_tokens``: how long a prompt is, before it is sent."""

from __future__ import annotations

from aiohttp import web

from relaydesk.core.gateway.anthropic.plan import count_work
from relaydesk.core.gateway.decode import encode
from relaydesk.surfaces.public.body import read_body
from relaydesk.surfaces.public.generate import incoming
from relaydesk.surfaces.public.state import HUB


async def count_tokens(request: web.Request) -> web.StreamResponse:
    """The number that a message's usage would say."""
    hub = request.app[HUB]
    body = await read_body(request, hub.max_body)
    count = await hub.gateway.count(body, count_work, incoming(request, "/v1/messages/count_tokens"))
    return web.Response(body=encode({"input_tokens": count}), content_type="application/json")
