"""The network listener: its routes, and what holds for every answer.

There is no application of aiohttp's beneath: the table is small, and a hop has to be cheap.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable
from typing import Final

from aiohttp import hdrs, web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.cors import PREFLIGHT, own_headers
from relaydesk.surfaces.network.errors import error_response
from relaydesk.surfaces.network.health import healthz
from relaydesk.surfaces.network.relay import relay
from relaydesk.surfaces.network.server import NetworkServer
from relaydesk.surfaces.network.state import Handler, Network, Route

_log: Final = logging.getLogger(__name__)

# A refused request with more than this still to come is not waited for.
_SMALL: Final = 64 * 1024


def make_network_app(network: Network) -> NetworkServer:
    """The server of the network listener. To be made inside a running loop."""
    routes = [
        Route("POST", RELAY_PATH, relay(network)),
        Route("GET", "/healthz", healthz(network.draining)),
        *network.routes,
    ]
    return NetworkServer(
        _outermost(_Table(routes)),
        prefix=network.prefix,
        limits=network.limits,
        left=network.left,
        clients=network.forwarder.circuits.clients,
        proxies=network.proxies,
    )


class _Table:
    """Handlers by path, then by method."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._exact: dict[str, dict[str, Handler]] = {}
        self._open: dict[str, dict[str, Handler]] = {}
        for route in routes:
            parent, _, last = route.path.rpartition("/")
            table, path = (self._open, parent) if last.startswith("{") else (self._exact, route.path)
            if route.method in table.setdefault(path, {}):
                raise ValueError(f"{route.method} {route.path} is there twice")
            table[path][route.method] = route.handler

    def find(self, asked: Asked) -> dict[str, Handler] | None:
        """The handlers of a path by method, None for no route."""
        found = self._exact.get(asked.place)
        if found is None:
            parent, _, last = asked.place.rpartition("/")
            found = self._open.get(parent)
            asked.rest = last if found is not None else ""
        return found


def _outermost(table: _Table) -> Handler:
    """Every answer goes through here, whatever became of the request."""

    async def answer(asked: Asked) -> web.StreamResponse:
        try:
            return await _routed(table, asked)
        except WireError as error:
            failure = error
        except ConnectionError:
            raise  # the client is gone
        except Exception as error:
            _report(asked.place, error)
            failure = WireError("internal_error", "relaydesk failed on this request")
        if asked.begun:
            asked.abort()
            raise ConnectionResetError("an answer broke off")
        response = error_response(asked.place, failure)
        if asked.can_read_body and (asked.content_length or _SMALL) >= _SMALL:
            response.force_close()
        return response

    return answer


async def _routed(table: _Table, asked: Asked) -> web.StreamResponse:
    if asked.method == hdrs.METH_OPTIONS:
        headers = own_headers(asked.place)
        headers.extend(PREFLIGHT)
        return web.Response(status=204, headers=headers)
    methods = table.find(asked)
    if methods is None:
        raise WireError("not_found", "there is no such route")
    handler = methods.get(asked.method)
    if handler is None:
        response = error_response(
            asked.place, WireError("method_not_allowed", "this method is not possible on this route")
        )
        response.headers[hdrs.ALLOW] = ", ".join(sorted({*methods, "OPTIONS"}))
        return response
    return await handler(asked)


def _report(place: str, error: Exception) -> None:
    """A failure of ours, without its text: that may hold what was asked for."""
    if place != RELAY_PATH:
        _log.error("a request to the network listener failed inside relaydesk", exc_info=error)
        return
    frame = traceback.extract_tb(error.__traceback__)[-1]
    _log.error(
        "a relayed request failed inside relaydesk: %s in %s, line %s",
        type(error).__name__,
        frame.name,
        frame.lineno,
    )
