"""What holds for every public route: an id, a key, and errors in the dialect's shape.

Order, outermost first: request id and errors, the name the hub was called by, preflights, then the key. Only
`OPEN_PATHS` answer without a key; an unknown path answers 401 first, so that a stranger learns nothing about
what exists.
"""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web

from relaydesk.core.access.caller import NOBODY
from relaydesk.core.access.credentials import presented, unauthorized
from relaydesk.core.access.proxies import client_of
from relaydesk.core.errors import Fault, FaultError
from relaydesk.core.gateway.dialect import dialect_reply
from relaydesk.core.gateway.responses.errors import NOT_KEPT
from relaydesk.core.ids import accept_request_id, new_request_id
from relaydesk.core.text import safe_text
from relaydesk.surfaces.public.routing import PATH_KEY, path_of
from relaydesk.surfaces.public.state import CALLER, CLIENT, HUB, REQUEST_ID, Handler

_log: Final = logging.getLogger(__name__)

# What clients ask to fill their pickers, some of them without a key whatever is set.
_DISCOVERY: Final = frozenset({"/v1/models", "/api/tags", "/api/show", "/api/version", "/api/ps"})
# The root only says that something is there: Ollama's command line looks for it without a key.
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/health", "/v1/health", "/"})


@web.middleware
async def with_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request its id and its client, and turn whatever is raised into one JSON error."""
    hub = request.app[HUB]
    given = accept_request_id(request.headers.get("x-request-id"))
    request[REQUEST_ID] = given or new_request_id(hub.rng)
    request[CLIENT] = client_of(
        request.remote or "", request.scheme, request.headers.items(), hub.exposure.proxies
    )
    try:
        return await handler(request)
    except FaultError as error:
        return error_response(request, error.fault)
    except web.HTTPException as error:
        response = error_response(request, _http_fault(request, error))
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
        return response
    except ConnectionResetError:
        raise
    except Exception:
        _log.exception("request %s failed inside relaydesk", request[REQUEST_ID])
        return error_response(request, internal_fault(request[REQUEST_ID]))


def is_discovery(path: str) -> bool:
    """Whether a route tells what models there are, and nothing else."""
    return path in _DISCOVERY or path.startswith("/v1/models/")


@web.middleware
async def with_key(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let through only requests that carry a valid key (seed: Auth)."""
    if path_of(request) in OPEN_PATHS:
        return await handler(request)
    candidates = presented(request.headers.items())
    in_path = request.get(PATH_KEY, "")
    hub = request.app[HUB]
    caller = hub.authenticator.check(candidates, in_path)
    if caller is None and hub.exposure.open_discovery and is_discovery(path_of(request)):
        caller = NOBODY
    if caller is None:
        raise unauthorized([*candidates, in_path] if in_path else candidates)
    request[CALLER] = caller
    return await handler(request)


def error_response(request: web.Request, fault: Fault) -> web.Response:
    """A fault as the dialect of the request's path says it."""
    reply = dialect_reply(path_of(request), fault)
    response = web.Response(status=reply.status, body=reply.body, headers=reply.headers)
    if request.can_read_body:
        # The rest of the body will not be read: say so instead of draining megabytes.
        response.force_close()
    return response


def internal_fault(request_id: str) -> Fault:
    """What a client is told of a failure of ours: where to look, and nothing else."""
    return Fault(
        "internal_error", "relaydesk failed on this request", f"look for {request_id} in the hub's log"
    )


def _http_fault(request: web.Request, error: web.HTTPException) -> Fault:
    if error.status == 404 and path_of(request).startswith("/v1/responses/"):
        return NOT_KEPT
    if error.status == 404:
        return Fault("not_found", "there is no such route", "GET /openapi.json lists the routes there are")
    if error.status == 405:
        return Fault("method_not_allowed", f"{safe_text(request.method, 20)} is not possible on this route")
    if error.status == 413:
        return Fault("request_too_large", "the request body is too large")
    return Fault("invalid_request", f"the request was refused: {error.reason}")
