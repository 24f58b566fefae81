"""What is no HTTP, answered like any error and logged without a word of it.

aiohttp answers such bytes itself, before the application sees a request, with the piece it stumbled over in
the log and in the answer. That piece may be a prompt (a wrong ``Content-Length`` makes the rest of a body
look like a new request) or a key, and neither may be in a log.
"""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web, web_response
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.errors import error_reply
from relaydesk.core.ids import new_request_id
from relaydesk.engine.clock import SystemRng

_log: Final = logging.getLogger(__name__)

SERVER_NAME: Final = "relaydesk"


class _NoPieces(logging.Filter):
    """Keeps reports of malformed requests out of the log; what went wrong with us stays in."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
            return True
        _log.debug("a client sent what is no HTTP (%s)", type(error).__name__)
        return False


def server_logger() -> logging.Logger:
    """The logger for aiohttp's own reports."""
    logger = logging.getLogger("relaydesk.http")
    if not any(isinstance(each, _NoPieces) for each in logger.filters):
        logger.addFilter(_NoPieces())
    return logger


def hide_versions() -> None:
    """``Server: relaydesk`` on every answer, those to malformed requests among them.

    For these aiohttp has no hook: the constant that it falls back on is the one place that covers all.
    """
    setattr(web_response, "SERVER_SOFTWARE", SERVER_NAME)  # noqa: B010  (not a name it exports)


def answer_in_shape() -> None:
    """Errors in their usual shape, with an id, for malformed requests too. Again no hook but the method."""
    if web.RequestHandler.handle_error is not _handle_error:
        setattr(web.RequestHandler, "handle_error", _handle_error)  # noqa: B010  (mypy: not a method to set)


_aiohttps_own: Final = web.RequestHandler.handle_error


def _handle_error(
    handler: web.RequestHandler,
    request: web.BaseRequest,
    status: int = 500,
    exc: BaseException | None = None,
    message: str | None = None,
) -> web.StreamResponse:
    # It logs, and raises where an answer has begun.
    _aiohttps_own(handler, request, status, exc, message)
    reply = error_reply(_fault(status, exc))
    response = web.Response(status=reply.status, body=reply.body, headers=reply.headers)
    response.headers["x-request-id"] = new_request_id(SystemRng())
    response.force_close()
    return response


def _fault(status: int, exc: BaseException | None) -> Fault:
    if isinstance(exc, LineTooLong):
        return Fault("invalid_request", "the path or a header of the request is too long", "send less in it")
    if 400 <= status < 500:
        return Fault("invalid_request", "this is no HTTP request that can be read", "see what sent it")
    return Fault("internal_error", "relaydesk failed on this request", "see the hub's log")
