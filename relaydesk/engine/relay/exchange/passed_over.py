"""Why a target does not get a request, on its way to whoever asks the next one."""

from __future__ import annotations

from relaydesk.core.errors import Fault
from relaydesk.core.relay.exchange.nobody import Kind, Passed
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.asking.answered import NotReachedError


class PassedOver(Exception):
    """A target does not get the request; ``passed`` says why."""

    def __init__(self, ref: NodeRef, kind: Kind, fault: Fault) -> None:
        super().__init__(fault.sentence)
        self.passed = Passed(ref, kind, fault)


def not_reached(ref: NodeRef, error: NotReachedError) -> PassedOver:
    """Nobody got through, or there is nobody to ask through."""
    kind: Kind = "no_relay" if error.fault.code == "no_relay_available" else "unreachable"
    return PassedOver(ref, kind, error.fault)


def no_key(ref: NodeRef) -> PassedOver:
    """No key of it holds (wire §3.5)."""
    said = f"node {ref} has no key that may be sealed to"
    fault = Fault("no_ephemeral_capacity", said, "see `relaydesk relays`", retry_after=30)
    return PassedOver(ref, "no_key", fault)


def no_credit(ref: NodeRef, price: int) -> PassedOver:
    """Our credit there is less than ``price``, microUSDC."""
    said = f"the request may cost {price} microUSDC, and our credit at node {ref} is less"
    hint = f"redeem a voucher of operator {ref.operator} (`relaydesk ledger redeem`)"
    return PassedOver(ref, "no_credit", Fault("credit_missing", said, hint))


def inconsistent(ref: NodeRef, why: str) -> PassedOver:
    """It broke a rule of the wire."""
    return PassedOver(ref, "refused", Fault("operator_inconsistent_response", f"node {ref}: {why}"))
