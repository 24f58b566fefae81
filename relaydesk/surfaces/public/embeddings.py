"""``POST /v1/embeddings``: texts as vectors, in OpenAI's shape."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from relaydesk.core.gateway.embeddings.output import item, whole
from relaydesk.core.gateway.embeddings.request import parse_embedding
from relaydesk.surfaces.public.body import read_body
from relaydesk.surfaces.public.generate import incoming
from relaydesk.surfaces.public.state import HUB

ROUTE: Final = "/v1/embeddings"
# Vectors written out before others have their turn: thousands of them would hold the loop.
_IN_ONE_GO: Final = 32


async def embeddings(request: web.Request) -> web.Response:
    """Embed what the body asks for."""
    hub = request.app[HUB]
    body = await read_body(request, hub.max_body)
    result = await hub.gateway.embed(body, parse_embedding, incoming(request, ROUTE))
    items: list[bytes] = []
    for number, vector in enumerate(result.vectors):
        items.append(item(number, vector, result.request.encoding))
        if number % _IN_ONE_GO == _IN_ONE_GO - 1:
            await asyncio.sleep(0)
    answer = whole(items, result.model, result.prompt_tokens)
    return web.Response(body=answer, content_type="application/json")
