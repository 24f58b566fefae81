"""What sealed answers have in common on HTTP."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import hdrs, web

from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.cors import own_headers

_NOTHING: Mapping[str, str] = {}


def sealed_response(
    asked: Asked, body: bytes, media_type: str, status: int = 200, headers: Mapping[str, str] = _NOTHING
) -> web.Response:
    """A whole answer; ``headers`` are sealed ones."""
    found = own_headers(asked.place)
    found.update(headers)
    found[hdrs.CONTENT_TYPE] = media_type
    return web.Response(status=status, body=body, headers=found)
