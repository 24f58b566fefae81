"""A fault in a response: as its last event, and inside a response that failed."""

from __future__ import annotations

from typing import Final

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.errors import error_body
from relaydesk.core.gateway.scrub import scrub

# For whatever asks for an earlier response: by its id, to delete or to cancel it.
NOT_KEPT: Final = Fault(
    "not_found", "responses are not kept here", "keep the answer yourself and send the conversation in input"
)


def error_members(fault: Fault) -> bytes:
    """The members of an ``error`` event: flat as it is documented, and nested as it is sent.

    Clients raise an exception for the key ``error``, which is what they should do.
    """
    flat = {"code": fault.code, "message": scrub(fault.sentence), "param": fault.param}
    return encode(flat)[1:-1] + b"," + error_body(fault)[1:-1]


def failure(fault: Fault) -> bytes:
    """``error`` of a response that failed."""
    return encode({"code": fault.code, "message": scrub(fault.sentence)})
