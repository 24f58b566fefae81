"""``GET /openapi.json``: what this hub serves, as an OpenAPI 3.1 document made from its routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from aiohttp import hdrs, web

from relaydesk import __version__
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.dialect import dialect_of
from relaydesk.core.gateway.json_schema import TEXT, Schema, shape
from relaydesk.surfaces.public.described import DESCRIBED, ERRORS, Described

_JSON: Final = "application/json"
_SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic", "description": "The key is the password."},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
}
# Of one event, or of one line.
_STREAMS: Final = {
    "text/event-stream": shape({"data": TEXT}, {"event": TEXT}),
    "application/x-ndjson": {"type": "object"},
}
_ID: Final = {"x-request-id": {"description": "The request in the hub's books", "schema": TEXT}}


def operations(table: web.UrlDispatcher) -> Iterator[tuple[str, str]]:
    """Method and path of every route; HEAD goes without saying beside GET."""
    for resource in table.resources():
        for route in resource:
            if route.method != hdrs.METH_HEAD:
                yield route.method, resource.canonical


def document(table: web.UrlDispatcher, prefix: str) -> dict[str, Any]:
    """The document for a table of routes, mounted at ``prefix``."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path in operations(table):
        row = DESCRIBED.get(f"{method} {path}", Described(f"{method} {path}"))
        paths.setdefault(path, {})[method.lower()] = _operation(path, row)
    return {
        "openapi": "3.1.0",
        "info": {"title": "relaydesk", "version": __version__},
        "servers": [{"url": prefix or "/"}],
        "security": [{name: []} for name in _SECURITY],
        "components": {"securitySchemes": _SECURITY},
        "paths": paths,
    }


def openapi(table: web.UrlDispatcher, prefix: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler that answers with the document of ``table``, itself among its routes."""
    made: list[bytes] = []

    async def handler(_request: web.Request) -> web.StreamResponse:
        # The routes do not change; and not every start is asked for this.
        if not made:
            made.append(encode(document(table, prefix)))
        return web.Response(body=made[0], content_type=_JSON)

    return handler


def _operation(path: str, row: Described) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": row.summary, "responses": _responses(path, row)}
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    if names:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in names
        ]
    if row.request is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": row.request}}}
    if row.open:
        operation["security"] = []
    return operation


def _responses(path: str, row: Described) -> dict[str, Any]:
    content: dict[str, Any] = {row.media: {"schema": row.answer}}
    if row.stream:
        content[row.stream] = {"schema": _STREAMS[row.stream]}
    responses: dict[str, Any] = {} if row.answer is None else {"200": _response("Done", content)}
    for status, meaning in row.also.items():
        responses[str(status)] = _response(meaning, content)
    error: Schema = ERRORS[dialect_of(path)]
    responses["default"] = _response("What is wrong, and what to do about it", {_JSON: {"schema": error}})
    return responses


def _response(description: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "headers": _ID, "content": content}
