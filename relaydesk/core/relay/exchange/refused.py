"""What a target's refusal means to who asked it: the catalogue's moves (wire §1.5), and our own words.

A message of the target is shown only as `SafeText`; what decides is its code alone.
"""

from __future__ import annotations

from typing import Final, Literal

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.faults import engine_fault
from relaydesk.core.relay.catalogue import RELAY_REFUSALS, read_error
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import SafeText

# restamp: sign anew by the node's time. reseal: with the key of fresh details. renew: with another recipient.
# busy: it has no place now. unavailable: it takes nothing now. pass_over: it will not serve this.
# stop: no node would.
Move = Literal["restamp", "reseal", "renew", "busy", "unavailable", "pass_over", "stop"]

_MOVES: Final[dict[str, Move]] = {
    "invalid_payer_sig": "restamp",
    "bad_reserve_envelope": "reseal",
    # What the original's own diagrams call it.
    "bad_body": "reseal",
    "reserve_replayed": "renew",
    # These are about the payer, whoever is asked.
    "payer_not_opted_in": "stop",
    "free_quota_exhausted": "stop",
}
_NOT_NOW: Final[dict[int, Move]] = {429: "busy", 503: "unavailable"}
_BALANCE: Final = "see `relaydesk ledger balance`"


def move(status: int, code: str) -> Move:
    """What to do after a reserve that the target itself refused."""
    return _MOVES.get(code) or _NOT_NOW.get(status, "pass_over")


def reserve_fault(ref: NodeRef, status: int, code: str, message: SafeText) -> Fault:
    """A refused reserve as our own user reads it."""
    said = f": {message}" if message else ""
    if code in ("payer_not_opted_in", "free_quota_exhausted"):
        return Fault(code, f"node {ref} refuses this payer ({code}){said}", _BALANCE)
    if code == "context_length_exceeded":
        return Fault(code, f"the request is larger than node {ref} takes", "shorten the messages")
    if code == "unsupported_model":
        hint = "see the list at /v1/models"
        return Fault("no_operator", f"the node at {ref} no longer serves it ({code}){said}", hint)
    if code == "node_draining":
        return Fault("operators_busy", f"node {ref} is stopping", "try again shortly")
    named = code or f"status {status}"
    if move(status, code) == "busy":
        return Fault("operators_busy", f"node {ref} has no room now ({named}){said}", "try again shortly")
    if move(status, code) == "unavailable":
        return Fault(
            "operators_busy", f"node {ref} takes no requests now ({named}){said}", "try again shortly"
        )
    return Fault("no_operator", f"node {ref} does not take the request ({named}){said}")


def plain_fault(ref: NodeRef, status: int, code: str, message: SafeText) -> Fault:
    """What a paid request was refused with in plain text, before anything was served (wire §4.6)."""
    said = f": {message}" if message else ""
    if code == "payment_verification_failed":
        hint = f"{_BALANCE}; redeem a voucher of operator {ref.operator}"
        return Fault(code, f"node {ref} does not find the price paid{said}", hint)
    if code == "node_draining":
        return Fault("operators_busy", f"node {ref} is stopping", "try again shortly", retry_after=2)
    if code in RELAY_REFUSALS:
        return Fault(
            "operators_unreachable",
            f"no relay forwarded the request to node {ref}",
            "try again",
            retry_after=60,
        )
    if code and status < 500:
        return Fault("operator_inconsistent_response", f"node {ref} refuses its own ticket ({code}){said}")
    named = code or f"status {status}"
    return Fault("upstream_unreachable", f"the answer of node {ref} is an error without a seal ({named})")


def sealed_fault(ref: NodeRef, status: int, body: bytes) -> Fault:
    """An error that came sealed, for nothing (wire §1.5). ``status`` is 0 where it stood in a stream."""
    report = read_error(body)
    said = f": {report.message}" if report.message else ""
    code = report.code
    if code == "context_length_exceeded":
        return Fault(code, f"the request is larger than node {ref} takes", "shorten the messages")
    if code == "provider_overloaded":
        return Fault("operators_busy", f"node {ref} has no room now", "try again shortly", retry_after=2)
    if code in ("zero_data_retention_required", "upstream_privacy_required"):
        return Fault("refused", f"node {ref} refuses by its rules of privacy ({code}){said}")
    if code == "unknown_builtin_tool":
        return Fault("unsupported", f"node {ref} has not every tool that is asked for", param="tools")
    if code in ("model_mismatch", "input_budget_exceeded", "chain_reserve_insufficient"):
        return Fault("operator_inconsistent_response", f"node {ref} refuses what it reserved ({code}){said}")
    return engine_fault(status, body)
