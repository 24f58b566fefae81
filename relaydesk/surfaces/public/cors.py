"""Pages in a browser: the one question they ask without a key, and what lets them read an answer."""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs, web

from relaydesk.core.access.cors import preflight, shared
from relaydesk.core.access.rate_headers import rate_headers
from relaydesk.core.gateway.dialect import dialect_of
from relaydesk.surfaces.public.routing import PATH_KEY, path_of
from relaydesk.surfaces.public.state import CALLER, HUB, REQUEST_ID, Handler

_PRIVATE_NETWORK: Final = "Access-Control-Request-Private-Network"
_ASKED: Final = ", ".join(
    (hdrs.ACCESS_CONTROL_REQUEST_METHOD, hdrs.ACCESS_CONTROL_REQUEST_HEADERS, _PRIVATE_NETWORK)
)


@web.middleware
async def with_preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a preflight of an allowed origin, whatever the path: browsers send none of them with a key.

    Every other request, a preflight of a foreign origin among them, goes on to the key.
    """
    method = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD)
    if request.method != hdrs.METH_OPTIONS or method is None or not (origin := allowed_origin(request)):
        return await handler(request)
    return web.Response(
        status=204,
        headers={
            "Vary": _ASKED,
            **preflight(
                origin,
                method,
                request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, ""),
                private_network=request.headers.get(_PRIVATE_NETWORK) == "true",
            ),
        },
    )


async def mark(request: web.Request, response: web.StreamResponse) -> None:
    """What every answer carries, also streams and errors: its id, who may read it, how its key stands."""
    if identity := request.get(REQUEST_ID):
        response.headers["x-request-id"] = identity
        if dialect_of(path_of(request)) == "anthropic":
            response.headers["request-id"] = identity
    if request.get(PATH_KEY):
        # The URL is the secret: a page that it opens must not pass it on.
        response.headers["Referrer-Policy"] = "no-referrer"
    caller = request.get(CALLER)
    if caller is not None and caller.spec is not None:
        standing = request.app[HUB].authenticator.ring.standing(caller.id)
        response.headers.update(rate_headers(caller.spec.limits, standing))
    vary = response.headers.get(hdrs.VARY)
    response.headers[hdrs.VARY] = f"{vary}, {hdrs.ORIGIN}" if vary else hdrs.ORIGIN
    if origin := allowed_origin(request):
        response.headers.update(shared(origin))


def allowed_origin(request: web.Request) -> str:
    """The origin of the asking page as its browser wrote it; empty where there is none or it is foreign."""
    origin = request.headers.get(hdrs.ORIGIN, "")
    return origin if origin and request.app[HUB].exposure.origins.allows(origin) else ""
