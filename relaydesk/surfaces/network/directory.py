"""A kept directory over HTTP: the document, and the door for records. Ours, not the wire's (design §6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from relaydesk.core.errors import FaultError
from relaydesk.core.relay.directory.record import MAX_BYTES
from relaydesk.core.relay.directory.refusal import Kind, Refused
from relaydesk.core.relay.directory.source import DOCUMENT_PATH, RECORDS_PATH
from relaydesk.engine.relay.directory.keeper import Keeper
from relaydesk.surfaces.network.cors import own_headers
from relaydesk.surfaces.network.state import Route

_log: Final = logging.getLogger(__name__)

# A record that comes slower than this does not come.
BODY_S: Final = 10.0
_RETRY_S: Final = 10

_STATUS: Final[dict[Kind, int]] = {"not_admitted": 403, "too_large": 413, "busy": 429, "full": 503}

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


def directory_routes(keeper: Keeper) -> tuple[Route, ...]:
    """The routes of the network listener on which ``keeper`` is served."""
    return (
        Route("GET", DOCUMENT_PATH, document_handler(keeper)),
        Route("POST", RECORDS_PATH, records_handler(keeper)),
    )


def add_directory_routes(app: web.Application, keeper: Keeper) -> None:
    """Serve ``keeper`` where there is no node."""
    app.router.add_get(DOCUMENT_PATH, document_handler(keeper))
    app.router.add_post(RECORDS_PATH, records_handler(keeper))


def document_handler(keeper: Keeper) -> Handler:
    """GET: the signed document as it stands, or 304 for whoever has it."""

    async def handle(request: web.BaseRequest) -> web.Response:
        served = keeper.served()
        if served is None:
            return _error(503, "directory_not_signed", "the directory is not signed yet")
        given = request.headers.get("If-None-Match", "").split(",")
        held = served.etag in [each.strip().removeprefix("W/") for each in given]
        response = _response(304 if held else 200, b"" if held else served.data)
        response.headers["ETag"] = served.etag
        # Kept by whoever likes to, and asked for anew each time: a directory is only as good as it is new.
        response.headers["Cache-Control"] = "no-cache, no-transform"
        return response

    return handle


def records_handler(keeper: Keeper) -> Handler:
    """POST: one record. Answered once it is listed, or with the reason why it is not."""

    async def handle(request: web.BaseRequest) -> web.Response:
        try:
            data = await _body(request)
            accepted = await keeper.accept(data)
        except Refused as refused:
            status = _STATUS.get(refused.kind, 400)
            retry_after = _RETRY_S if status in (429, 503) else None
            return _error(status, f"record_{refused.kind}", refused.sentence, retry_after)
        except FaultError as failed:
            _log.error("a record could not be kept: %s", failed.fault.sentence)
            return _error(500, "internal_error", "the record could not be kept")
        value = {
            "operator_id": accepted.ref.operator,
            "node_id": accepted.ref.node,
            "version": accepted.version,
            "directory_version": accepted.document_version,
        }
        return _response(200, msgspec.json.encode(value))

    return handle


def _error(status: int, code: str, message: str, retry_after: int | None = None) -> web.Response:
    """The wire's shape of an error (wire §1.5)."""
    body: dict[str, Any] = {"error": {"message": message, "type": code, "code": code}}
    response = _response(status, msgspec.json.encode(body))
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)
    return response


def _response(status: int, body: bytes) -> web.Response:
    headers = own_headers(DOCUMENT_PATH)
    headers["Content-Type"] = "application/json"
    return web.Response(status=status, body=body, headers=headers)


async def _body(request: web.BaseRequest) -> bytes:
    """At most a record's bytes, within `BODY_S`. Raises `Refused`."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refused("malformed", "a record is sent uncompressed")
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.content.iter_any():
                data += piece
                if len(data) > MAX_BYTES:
                    raise Refused("too_large", f"a record has at most {MAX_BYTES} bytes")
    except TimeoutError:
        raise Refused("malformed", f"the record was not complete within {BODY_S:g} s") from None
    return bytes(data)
