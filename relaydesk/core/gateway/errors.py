"""A fault in the shape that clients of OpenAI's API read: status, headers, body, or a frame in a stream."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.scrub import scrub
from relaydesk.core.gateway.sse import data_frame

JSON: Final = "application/json; charset=utf-8"


class ErrorReply(msgspec.Struct, frozen=True):
    """A whole HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Error(msgspec.Struct):
    message: str
    type: str
    param: str | msgspec.UnsetType | None
    code: str


def error_body(fault: Fault) -> bytes:
    """``{"error": {message, type, param, code}}``.

    The bodies of a model that cannot be placed have no ``param``: the seed gives them to the letter.
    """
    rule = fault.rule
    param = msgspec.UNSET if fault.param is None and fault.code == "model_unavailable" else fault.param
    return encode({"error": _Error(scrub(fault.sentence), rule.type, param, fault.code)})


def error_reply(fault: Fault) -> ErrorReply:
    """The answer before any byte of another was sent."""
    return reply_with(fault, error_body(fault))


def reply_with(fault: Fault, body: bytes) -> ErrorReply:
    """A fault's status and headers around a ``body`` in any dialect.

    ``x-should-retry: false`` where a retry cannot help: clients otherwise retry every status from 500 on,
    and 429. ``Retry-After`` only beside a retry that makes sense, because some sleep it out in full.
    """
    rule = fault.rule
    headers = {"Content-Type": JSON}
    if not rule.retry:
        headers["x-should-retry"] = "false"
    elif fault.retry_after is not None:
        headers["Retry-After"] = str(fault.retry_after)
    if rule.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="relaydesk"'
    return ErrorReply(rule.status, headers, body)


def error_frame(fault: Fault) -> bytes:
    """The last frame of a stream that failed; no finish reason and no ``[DONE]`` follow it."""
    return data_frame(error_body(fault))
