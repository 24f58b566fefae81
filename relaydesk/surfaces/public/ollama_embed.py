"""The routes of Ollama's dialect that turn texts into vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.embeddings.vector import numbers_of
from relaydesk.core.gateway.ollama.embed import (
    embed_body,
    embed_request,
    embeddings_body,
    embeddings_request,
)
from relaydesk.surfaces.public.body import read_body
from relaydesk.surfaces.public.generate import incoming
from relaydesk.surfaces.public.state import HUB

# Vectors written out before others have their turn: thousands of them would hold the loop.
_IN_ONE_GO: Final = 32


async def embed(request: web.Request) -> web.Response:
    """A vector for each input."""
    hub = request.app[HUB]
    body = await read_body(request, hub.max_body)
    result = await hub.gateway.embed(body, embed_request, incoming(request, "/api/embed"))
    vectors = await _written(result.vectors)
    answer = embed_body(result.model, vectors, result.prompt_tokens, result.spent)
    return web.Response(body=answer, content_type="application/json")


async def embeddings(request: web.Request) -> web.Response:
    """The vector of one prompt."""
    hub = request.app[HUB]
    body = await read_body(request, hub.max_body)
    result = await hub.gateway.embed(body, embeddings_request, incoming(request, "/api/embeddings"))
    answer = embeddings_body(await _written(result.vectors))
    return web.Response(body=answer, content_type="application/json")


async def _written(vectors: Sequence[bytes]) -> list[bytes]:
    """Vectors as JSON lists."""
    written: list[bytes] = []
    for number, vector in enumerate(vectors, 1):
        written.append(encode(numbers_of(vector)))
        if number % _IN_ONE_GO == 0:
            await asyncio.sleep(0)
    return written
