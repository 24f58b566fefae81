"""Why there is no target for a request, in the catalogue's caller-made codes (wire §1.5, §3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.errors import Fault
from relaydesk.core.relay.prepare import PREFIX
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.schedule import RESTART_S
from relaydesk.core.relay.target.constraints import Constraints
from relaydesk.core.relay.target.selection import Selection

# Why a target was passed over. unreachable: nobody got through. no_relay: nobody to ask through. no_key: no
# key to seal to. no_credit: ours there is too little. The others are answers: busy for want of a place,
# unavailable for a reason of the node's own, or refused by it or by us.
Kind = Literal["unreachable", "no_relay", "no_key", "no_credit", "busy", "unavailable", "refused"]
PASSING: Final = ("unreachable", "no_relay")
# It answered, said nothing of the request, and may take it soon (wire §1.5: "try another").
WAITING: Final = ("busy", "unavailable")

_PINS: Final = "see `provider` in the request"
_SEE: Final = "see `relaydesk relays`"


@dataclass(frozen=True, slots=True)
class Passed:
    """A target that did not get the request, and why."""

    ref: NodeRef
    kind: Kind
    fault: Fault


@dataclass(frozen=True, slots=True)
class Known:
    """Nodes that serve a model but are no candidates now: ``down`` are left alone for a while."""

    probed: int = 0
    down: int = 0


def unselected(selection: Selection, constraints: Constraints, known: Known) -> Fault:
    """Why a selection is empty. Raises `ValueError` for one that is not."""
    # As our own users call it; a bare id that begins with a slash would read like a file's path.
    model = PREFIX + constraints.model
    match selection.reason:
        case None:
            raise ValueError("there are targets")
        case "not_served":
            return _not_served(model, known)
        case "too_large":
            return _too_large(selection, constraints)
        case "provider_pin_blocked":
            return Fault("no_pinned_operator", f"no node that is asked for serves {model}", _PINS)
        case "version_blocked":
            return Fault("no_compatible_operator", f"no node that serves {model} speaks our version", _SEE)
        case "tee_blocked":
            return Fault("no_tee_capacity", f"no node serves {model} in a trusted environment")
        case "staging_blocked":
            return Fault("no_production_operator", f"only nodes under test serve {model}")
        case "signer_underfunded_blocked":
            return Fault("no_funded_operator", f"no node that serves {model} can pay for its settlement")
        case "price_blocked":
            return Fault(
                "price_ceiling_exceeded",
                f"every node that serves {model} asks more than provider.max_price",
                "raise it, or leave it out",
                param="provider.max_price",
            )
        case "tool_unsupported":
            return Fault("no_tool_capacity", f"no node that serves {model} has every tool asked for")
        case "affinity_blocked":
            return Fault(
                "pin_conflicts_with_continuation", "the node of this conversation is ruled out", _PINS
            )
        case "image_endpoint_unsupported":
            return Fault("unsupported", f"no node serves {model} for images")


def _not_served(model: str, known: Known) -> Fault:
    if known.down:
        return Fault(
            "operators_unreachable",
            f"every node that serves {model} could not be reached lately",
            _SEE,
            retry_after=RESTART_S,
        )
    if not known.probed:
        return Fault("no_operator", "no node of the network has answered yet", _SEE)
    return Fault("no_operator", f"no node of the network serves {model} now", "see the list at /v1/models")


def _too_large(selection: Selection, constraints: Constraints) -> Fault:
    widest = max((miss.context_window for miss in selection.misses), default=0)
    tokens = constraints.input_tokens_v2 or constraints.input_tokens
    if constraints.max_output_tokens is None and tokens < widest:
        return Fault(
            "max_output_required",
            "no node has room for the prompt beside the longest answer it may give",
            f"state max_tokens of at most {widest - tokens}",
            param="max_tokens",
        )
    return Fault(
        "context_length_exceeded",
        f"the prompt (counted as {tokens} tokens) and its answer exceed the context window of every node"
        f" that serves {constraints.model}; the largest has {widest}",
        "shorten the messages or lower max_tokens",
        param="messages",
    )


def unserved(passed: Sequence[Passed]) -> Fault:
    """Why none of the selected targets took the request; ``passed`` is what became of each, at least one.

    What an operator can do nothing about comes last: a node that is busy may have room again.
    """
    kinds = {each.kind for each in passed}
    if kinds <= set(PASSING):
        kind: Kind = "unreachable" if "unreachable" in kinds else "no_relay"
        return next(each.fault for each in passed if each.kind == kind)
    busy = [each.fault for kind in WAITING for each in passed if each.kind == kind]
    if busy:
        # The network's own word after its whole schedule is operators_unreachable, which these are not.
        waits = [fault.retry_after for fault in busy if fault.retry_after]
        return Fault("operators_busy", busy[0].message, busy[0].hint, retry_after=min(waits, default=2))
    for last in (("refused", "no_credit"), ("no_key",)):
        for each in passed:
            if each.kind in last:
                return each.fault
    raise ValueError("nothing was passed over")
