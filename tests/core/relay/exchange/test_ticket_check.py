"""Tickets signed by a second library, held against what was asked."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from relaydesk.core.relay.exchange.ticket_check import Terms, ticket_fault
from relaydesk.core.relay.price.advertised import Advertised, Rates
from relaydesk.core.relay.records.reserve import ReserveRequest
from relaydesk.core.relay.records.ticket import Ticket
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.hints import Hints
from tests.support.ledger_rig import NODE, OPERATOR
from tests.support.wire import codec

NOW = 1_700_000_000
REF = NodeRef(7, 1)
ASKED = ReserveRequest(model="m", input_count=1000, max_output_count=500, stream=True)
FIELDS: dict[str, Any] = {
    "ticket_id": base64.b64encode(b"t" * 16).decode(),
    "operator_id": 7,
    "node_id": 1,
    "input_count": 1000,
    "max_output_count": 500,
    "input_rate": 1_000_000,
    "output_rate": 2_000_000,
    "max_price": 2000,
    "min_price": 10,
    "expires_at": NOW + 300,
    "model": "m",
    "stream": True,
    "commit_k": base64.b64encode(b"c" * 32).decode(),
    "input_usage_type": 1,
    "output_usage_type": 1,
    "cache_read_rate": 1_000_000,
}


def ticket(key: Any = NODE, **fields: Any) -> Ticket:
    said = FIELDS | fields
    return msgspec.convert({**said, "sig": key.sig(codec.ticket_bytes(said))}, Ticket)


def terms(**fields: Any) -> Terms:
    known = Advertised(Rates(1_000_000, 2_000_000), min_charge_tokens=5)
    given: dict[str, Any] = {
        "ref": REF,
        "public": codec.public_key(NODE.address),
        "request": ASKED,
        "advertised": known,
        "hints": Hints(),
        "stated": False,
        "credit_left": None,
        "fee_bps": 0,
    }
    return Terms(**(given | fields))


def code(found: Ticket, **fields: Any) -> str:
    fault = ticket_fault(found, terms(**fields), NOW)
    return "" if fault is None else fault.code


INCONSISTENT, PRICE = "operator_inconsistent_response", "ticket_price_rejected"


def test_what_was_asked_at_the_price_that_was_told() -> None:
    assert code(ticket()) == ""
    assert code(ticket(), stated=True) == ""


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"operator_id": 8}, INCONSISTENT),
        ({"node_id": 2}, INCONSISTENT),
        ({"model": "n"}, INCONSISTENT),
        ({"stream": False}, INCONSISTENT),
        ({"max_output_count": 501, "max_price": 2002}, INCONSISTENT),
        ({"max_output_count": 0, "max_price": 1000}, INCONSISTENT),
        # Within a tenth the target still takes what was counted, below it does not.
        ({"input_count": 910, "max_price": 1910}, ""),
        ({"input_count": 909, "max_price": 1909}, INCONSISTENT),
        ({"max_output_count": 400, "max_price": 1800}, ""),
        ({"expires_at": NOW + 2}, ""),
        ({"expires_at": NOW + 1}, INCONSISTENT),
        ({"input_count": 1100, "max_price": 2100}, ""),
        ({"input_count": 1101, "max_price": 2101}, PRICE),
        ({"max_price": 2001}, PRICE),
        ({"max_price": 1999}, PRICE),
        ({"min_price": 20}, ""),
        ({"min_price": 21}, PRICE),
        ({"output_rate": 4_000_000, "max_price": 3000}, ""),
        ({"output_rate": 4_000_001, "max_price": 3001}, PRICE),
        ({"cache_read_rate": 1_000_001}, PRICE),
    ],
)
def test_each_field(fields: dict[str, Any], expected: str) -> None:
    assert code(ticket(**fields)) == expected


def test_only_the_nodes_own_key_signs() -> None:
    assert code(ticket(OPERATOR)) == INCONSISTENT
    changed = msgspec.structs.replace(ticket(), expires_at=NOW + 301)
    assert code(changed) == INCONSISTENT


def test_a_limit_that_the_caller_stated_is_not_lowered() -> None:
    assert code(ticket(max_output_count=499, max_price=1998), stated=True) == INCONSISTENT


def test_a_minimum_where_none_was_told() -> None:
    free_of_it = Advertised(Rates(1_000_000, 2_000_000))
    assert code(ticket(), advertised=free_of_it) == PRICE
    assert code(ticket(min_price=0), advertised=free_of_it) == ""


def test_a_price_that_no_ledger_holds() -> None:
    big = 10**13
    dear = ticket(input_rate=big, output_rate=big, max_price=15 * 10**9, cache_read_rate=0)
    assert code(dear, advertised=None) == ""
    more = ticket(input_rate=10**19, output_rate=0, max_price=10**16, cache_read_rate=0)
    assert code(more, advertised=None) == PRICE


def test_the_callers_own_ceilings() -> None:
    assert code(ticket(), hints=Hints(max_input_rate=1_000_000, max_output_rate=2_000_000)) == ""
    assert code(ticket(), hints=Hints(max_input_rate=999_999)) == "price_ceiling_exceeded"
    assert code(ticket(), hints=Hints(max_output_rate=1_999_999)) == "price_ceiling_exceeded"


def test_what_a_key_has_left() -> None:
    assert code(ticket(), credit_left=2000) == ""
    assert code(ticket(), credit_left=1999) == "credit_per_day_exceeded"
    assert code(ticket(), credit_left=0) == "credit_per_day_exceeded"


def test_the_fee_is_part_of_the_price() -> None:
    assert code(ticket(max_price=2020), fee_bps=100) == ""
    assert code(ticket(), fee_bps=100) == PRICE
