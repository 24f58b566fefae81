"""What is no HTTP, answered and logged without a word of it.

aiohttp answers such bytes itself, before the application sees a request, and logs the piece it stumbled over.
That piece may be a prompt (a wrong ``Content-Length`` makes the rest of a body look like a new request) or a
key, and neither may be in a log.
"""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web, web_response
from aiohttp.http_exceptions import HttpProcessingError

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
