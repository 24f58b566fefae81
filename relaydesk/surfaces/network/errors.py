"""Refusals of the network listener, in the wire's shape and with what every answer carries."""

from __future__ import annotations

from aiohttp import hdrs, web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.surfaces.network.cors import own_headers


def error_response(place: str, error: WireError) -> web.Response:
    """What a refusal is on HTTP."""
    headers = own_headers(place)
    headers[hdrs.CONTENT_TYPE] = "application/json"
    if error.retry_after is not None:
        headers[hdrs.RETRY_AFTER] = str(error.retry_after)
    return web.Response(status=error.status, body=error.body(), headers=headers)
