"""What a paid request is refused with: in the wire's codes where it has one, else as the gateway says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.errors import error_body
from relaydesk.core.relay.catalogue import CATALOGUE, WireError, wire_error

# What a model server says when it cannot now; the node says it in one word (wire §1.5).
_OVERLOADED: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class SealedFault:
    """An error to be sealed: the HTTP status of an answer that is not streamed, and the JSON."""

    status: int
    body: bytes


def of_wire(error: WireError) -> SealedFault:
    """A refusal of the node's own."""
    return SealedFault(error.status, error.body())


def of_gateway(fault: Fault) -> SealedFault:
    """A fault of the gateway or the engine behind it."""
    if fault.rule.status in _OVERLOADED:
        code, message = "provider_overloaded", "the model could not be had in time: try another node"
    elif fault.code == "context_length_exceeded":
        code, message = fault.code, fault.sentence
    else:
        return SealedFault(fault.rule.status, error_body(fault))
    return SealedFault(CATALOGUE[code].status, wire_error(code, message))
