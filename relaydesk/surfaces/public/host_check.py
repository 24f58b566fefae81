"""A hub on a loopback address answers only where it is called by a name of this machine."""

from __future__ import annotations

from aiohttp import hdrs, web

from relaydesk.core.access.hosts import is_own
from relaydesk.core.errors import PeerError
from relaydesk.core.text import safe_text
from relaydesk.surfaces.public.state import HUB, Handler


@web.middleware
async def with_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a foreign ``Host`` (DNS rebinding). No header at all is HTTP/1.0, which no browser speaks."""
    names = request.app[HUB].exposure.hosts
    if names is not None:
        for header in request.headers.getall(hdrs.HOST, ()):
            if not is_own(header, names):
                raise PeerError(
                    "host_not_allowed",
                    f"this hub serves its own machine and is not called {safe_text(header, 80)!r}",
                    "use localhost, or add the name to RELAY_HOSTS",
                )
    return await handler(request)
