"""What a payer holds a ticket to before anything is paid (wire §3.5, §4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relaydesk.core.errors import Fault
from relaydesk.core.ledger.records import MOST
from relaydesk.core.relay.price.advertised import Advertised
from relaydesk.core.relay.price.check import check_price
from relaydesk.core.relay.records.reserve import ReserveRequest
from relaydesk.core.relay.records.ticket import Ticket, not_as_asked, ticket_is_signed
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.hints import Hints

# A ticket that ends sooner would end on its way.
LEAST_LIFE_S: Final = 2
_COUNT_PERCENT: Final = 110


@dataclass(frozen=True, slots=True)
class Terms:
    """What was asked, and what it may cost.

    ``public`` is the node's signing key, ``stated`` whether the caller limited the output itself,
    ``credit_left`` microUSDC or None, ``fee_bps`` the network's fee in 1/10000.
    """

    ref: NodeRef
    public: bytes
    request: ReserveRequest
    advertised: Advertised | None
    hints: Hints
    stated: bool
    credit_left: int | None
    fee_bps: int


def ticket_fault(ticket: Ticket, terms: Terms, now_s: int) -> Fault | None:
    """Why ``ticket`` is not to be paid, None where it is.

    ``operator_inconsistent_response``: it is not the node's, or not what was asked.
    ``ticket_price_rejected``, ``price_ceiling_exceeded``, ``credit_per_day_exceeded``: its price.
    """
    ref = terms.ref
    if not ticket_is_signed(ticket, terms.public):
        return _inconsistent(ref, "its ticket is not signed with its key")
    wrong = not_as_asked(ticket, ref, terms.request) or _too_little(ticket, terms)
    if wrong:
        return _inconsistent(ref, f"its ticket is for another {wrong} than was asked")
    if ticket.expires_at < now_s + LEAST_LIFE_S:
        return _inconsistent(ref, "its ticket has expired already")
    return _price_fault(ticket, terms)


def _too_little(ticket: Ticket, terms: Terms) -> str:
    """A node may lower the counts to what fits; below what is needed the request would be refused or cut."""
    if ticket.input_count * _COUNT_PERCENT < terms.request.input_count * 100:
        return "input_count"
    if ticket.max_output_count < (terms.request.max_output_count if terms.stated else 1):
        return "max_output_count"
    return ""


def _price_fault(ticket: Ticket, terms: Terms) -> Fault | None:
    ref, known = terms.ref, terms.advertised
    violation = check_price(ticket, known, fee_bps=terms.fee_bps, own_count=terms.request.input_count)
    why = violation.sentence if violation is not None else ""
    # A minimum that is told to be none is a reference as well, unlike one that is not told.
    told_none = known is not None and not known.min_charge_tokens and not known.min_charge_micro
    if not why and told_none and ticket.min_price:
        why = f"min_price is {ticket.min_price}, allowed is 0"
    if not why and ticket.max_price > MOST:
        why = "max_price is more than a ledger holds"
    if why:
        return Fault("ticket_price_rejected", f"node {ref} reserved at a price that does not hold: {why}")
    hints = terms.hints
    for rate, ceiling in (
        (ticket.input_rate, hints.max_input_rate),
        (ticket.output_rate, hints.max_output_rate),
    ):
        if ceiling is not None and rate > ceiling:
            return Fault(
                "price_ceiling_exceeded",
                f"node {ref} reserved at {rate} microUSDC per 1M tokens, provider.max_price allows {ceiling}",
                "raise it, or leave it out",
                param="provider.max_price",
            )
    if terms.credit_left is not None and ticket.max_price > terms.credit_left:
        return no_credit_left(ticket.max_price, terms.credit_left)
    return None


def no_credit_left(price: int, left: int) -> Fault:
    """The refusal of a request that may cost more than its key has left today; both in microUSDC."""
    return Fault(
        "credit_per_day_exceeded",
        f"the request may cost {price} microUSDC, and this key has {left} left",
        "wait until tomorrow (UTC), ask for less, or raise the key's limit",
    )


def _inconsistent(ref: NodeRef, why: str) -> Fault:
    return Fault("operator_inconsistent_response", f"node {ref} broke the rules: {why}")
