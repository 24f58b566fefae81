"""A fault as clients of Anthropic's API read it: a typed object around a kind and a sentence."""

from __future__ import annotations

from typing import Final

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.errors import ErrorReply, reply_with
from relaydesk.core.gateway.scrub import scrub
from relaydesk.core.gateway.typed_event import typed_event

_TOO_LONG: Final = "prompt is too long"
_KINDS: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


def anthropic_error_body(fault: Fault) -> bytes:
    """``{"type": "error", "error": {"type", "message"}}``."""
    return encode({"type": "error", "error": {"type": _kind(fault), "message": _sentence(fault)}})


def anthropic_error_reply(fault: Fault) -> ErrorReply:
    """The answer before any byte of another was sent."""
    return reply_with(fault, anthropic_error_body(fault))


def anthropic_error_event(fault: Fault) -> bytes:
    """The last event of a stream that failed; nothing follows it."""
    return typed_event(b"error", anthropic_error_body(fault))


def _kind(fault: Fault) -> str:
    status = fault.rule.status
    if status in _KINDS:
        return _KINDS[status]
    if status < 500:
        return "invalid_request_error"
    return "overloaded_error" if status == 503 and fault.rule.retry else "api_error"


def _sentence(fault: Fault) -> str:
    """The words by which agents know that it is time to shorten a conversation are among it."""
    sentence = scrub(fault.sentence)
    if fault.code != "context_length_exceeded" or _TOO_LONG in sentence:
        return sentence
    return f"{_TOO_LONG}: {sentence}"
