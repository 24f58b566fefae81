"""The terms of a ticket: what a reserve asks for, at what this node offers (wire §4.3)."""

from __future__ import annotations

import msgspec

from relaydesk.core.ledger.records import MOST
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.price.charge import base_max, with_fee
from relaydesk.core.relay.records.reserve import ReserveRequest
from relaydesk.core.relay.records.ticket import USAGE_TOKENS, Ticket
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.target.offers import Offer


def ticket_of(
    request: ReserveRequest,
    offer: Offer,
    ref: NodeRef,
    *,
    ticket_id: str,
    commit_k: str,
    expires_at: int,
    fee_bps: int = 0,
) -> Ticket:
    """The ticket, unsigned. Raises `WireError`: ``unsupported_model``, ``context_length_exceeded``,
    ``price_overflow``.

    Counts are what was asked for: more input than the window holds, beside the output, is refused. There is
    no least price, and cached input, of which strangers have none, costs what other input does.
    """
    if any((request.image_n, request.image_edit, request.image_tool_budget, request.image_edit_tool_budget)):
        raise WireError("unsupported_model", "this node makes no images")
    if request.input_count + request.max_output_count > offer.window:
        raise WireError(
            "context_length_exceeded",
            f"input and output together are more than the {offer.window} tokens of this model's window",
        )
    ticket = Ticket(
        ticket_id=ticket_id,
        operator_id=ref.operator,
        node_id=ref.node,
        input_count=request.input_count,
        max_output_count=request.max_output_count,
        input_rate=offer.input_rate,
        output_rate=offer.output_rate,
        max_price=0,
        min_price=0,
        expires_at=expires_at,
        model=request.model,
        stream=request.stream,
        commit_k=commit_k,
        input_usage_type=USAGE_TOKENS,
        output_usage_type=USAGE_TOKENS,
        cache_read_rate=offer.input_rate,
    )
    try:
        price = with_fee(base_of(ticket), fee_bps)
    except OverflowError:
        price = MOST + 1
    if price > MOST:
        raise WireError("price_overflow", "the price is more than a ticket can hold")
    return msgspec.structs.replace(ticket, max_price=price)


def base_of(ticket: Ticket) -> int:
    """What the operator gets at most, in microUSDC. Raises `OverflowError`."""
    return base_max(
        ticket.input_count,
        ticket.max_output_count,
        ticket.input_rate,
        ticket.output_rate,
        min_price=ticket.min_price,
    )
