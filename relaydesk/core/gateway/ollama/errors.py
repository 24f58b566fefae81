"""A fault as clients of Ollama's API read it: ``error`` is a plain string, and the key means an error."""

from __future__ import annotations

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.errors import ErrorReply, reply_with
from relaydesk.core.gateway.scrub import scrub


def ollama_error_body(fault: Fault) -> bytes:
    """``{"error": "text"}``."""
    return encode({"error": scrub(fault.sentence)})


def ollama_error_reply(fault: Fault) -> ErrorReply:
    """The answer before any byte of another was sent."""
    return reply_with(fault, ollama_error_body(fault))


def ollama_error_line(fault: Fault) -> bytes:
    """The last line of a stream that failed; nothing follows it."""
    return ollama_error_body(fault) + b"\n"
