"""What a ticket says, by hand from the wire's formulas."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.records.reserve import ReserveRequest
from relaydesk.core.relay.records.ticket import Ticket
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.target.offers import Offer
from relaydesk.engine.relay.target.terms import base_of, ticket_of

OFFER = Offer("m", 4096, 500_000, 2_000_000, 2, 2, 0)
ASKED = ReserveRequest(model="m", input_count=1001, max_output_count=50, stream=True)


def made(asked: ReserveRequest = ASKED, offer: Offer = OFFER, **more: Any) -> Ticket:
    return ticket_of(asked, offer, NodeRef(7, 2), ticket_id="t", commit_k="k", expires_at=99, **more)


def test_counts_are_what_was_asked_and_rates_the_offers() -> None:
    ticket = made()
    assert (ticket.operator_id, ticket.node_id, ticket.ticket_id, ticket.commit_k) == (7, 2, "t", "k")
    assert (ticket.input_count, ticket.max_output_count, ticket.stream) == (1001, 50, True)
    # ceil(1001 * 0.5) + 50 * 2
    assert (ticket.max_price, ticket.min_price, base_of(ticket)) == (601, 0, 601)
    assert made(fee_bps=1000).max_price == 601 + 61
    assert ticket.cache_read_rate == ticket.input_rate
    assert (ticket.input_usage_type, ticket.output_usage_type) == (1, 1)


def test_a_free_offer_costs_nothing() -> None:
    free = Offer("m", 4096, 0, 0, 2, 2, 0)
    assert made(offer=free).max_price == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"input_count": 4047}, "context_length_exceeded"),
        ({"input_count": 5000}, "context_length_exceeded"),
        ({"max_output_count": 4096}, "context_length_exceeded"),
        ({"image_n": 1}, "unsupported_model"),
        ({"image_edit": True}, "unsupported_model"),
        ({"image_tool_budget": 1}, "unsupported_model"),
    ],
)
def test_what_is_refused(change: dict[str, Any], code: str) -> None:
    with pytest.raises(WireError) as caught:
        made(msgspec.structs.replace(ASKED, **change))
    assert caught.value.code == code


def test_all_of_the_window_is_no_more_than_it() -> None:
    assert made(msgspec.structs.replace(ASKED, input_count=4046)).input_count == 4046


@pytest.mark.parametrize("count", [10**7, 2**62])
def test_prices_that_no_ledger_holds(count: int) -> None:
    """2**53 - 1 microUSDC is the most that every reader of JSON takes exactly."""
    dear = Offer("m", 2**63, 10**15, 0, 2, 2, 0)
    with pytest.raises(WireError) as caught:
        made(msgspec.structs.replace(ASKED, input_count=count), dear)
    assert caught.value.code == "price_overflow"
    assert made(msgspec.structs.replace(ASKED, input_count=9 * 10**6), dear).max_price == 9 * 10**15
