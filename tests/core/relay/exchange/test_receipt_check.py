"""Receipts signed by a second library, held against tickets."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.exchange.receipt_check import judge_receipt
from relaydesk.core.relay.records.receipt import Receipt
from relaydesk.core.relay.records.ticket import Ticket
from tests.support.ledger_rig import NODE, OPERATOR
from tests.support.wire import codec, prices

HASH = hashlib.sha256(b"answer").hexdigest()
PUBLIC = codec.public_key(NODE.address)

TICKET = Ticket(
    ticket_id=base64.b64encode(b"t" * 16).decode(),
    operator_id=7,
    node_id=1,
    input_count=1000,
    max_output_count=500,
    input_rate=1_000_000,
    output_rate=2_000_000,
    max_price=2000,
    min_price=10,
    expires_at=1_700_000_000,
    model="m",
    commit_k="",
    cache_read_rate=500_000,
)
FIELDS: dict[str, Any] = {
    "ticket_id": TICKET.ticket_id,
    "actual_input_count": 100,
    "actual_output_count": 50,
    "amount_charged": 200,
    "ttft_ms": 3,
    "decode_ms": 4,
    "body_hash": HASH,
    "input_usage_type": 1,
    "output_usage_type": 1,
    "aux_output_usage_type": 0,
    "aux_output_count": 0,
    "cached_input_count": 0,
}


def receipt(key: Any = NODE, **fields: Any) -> Receipt:
    said = FIELDS | fields
    return msgspec.convert({**said, "sig": key.sig(codec.receipt_bytes(said))}, Receipt)


def judged(found: Receipt, *, failed: bool = False) -> tuple[str, str, int | None]:
    step, wrong, values = judge_receipt(found, TICKET, PUBLIC, HASH, failed=failed)
    return step, wrong, None if values is None else values.amount


def test_what_holds_is_agreed_to_in_all_nine_values() -> None:
    step, wrong, values = judge_receipt(receipt(), TICKET, PUBLIC, HASH, failed=False)
    digest = hashlib.sha256(codec.receipt_bytes(FIELDS)).hexdigest()
    assert (step, wrong) == ("agree", "")
    assert values is not None
    assert msgspec.structs.astuple(values) == (200, digest, 3, 4, 100, 50, 1, 1, 0)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"amount_charged": 201}, ("dispute", "amount", 200)),
        ({"amount_charged": 2001}, ("dispute", "price", 200)),
        ({"cached_input_count": 40}, ("dispute", "amount", 180)),
        ({"cached_input_count": 40, "amount_charged": 180}, ("agree", "", 180)),
        ({"actual_input_count": 1, "actual_output_count": 1, "amount_charged": 10}, ("agree", "", 10)),
        ({"actual_input_count": 0, "actual_output_count": 0, "amount_charged": 10}, ("dispute", "amount", 0)),
        ({"actual_output_count": 10**6, "amount_charged": 2000}, ("agree", "", 2000)),
        ({"body_hash": "0" * 64}, ("protest", "body_hash", None)),
        ({"body_hash": "0" * 64, "cached_input_count": 101}, ("protest", "body_hash", None)),
        ({"cached_input_count": 101}, ("nothing", "cached", None)),
        ({"ticket_id": base64.b64encode(b"u" * 16).decode()}, ("nothing", "ticket", None)),
        ({"actual_input_count": 2**53}, ("nothing", "range", None)),
        # Not priced by tokens alone: only the ticket's most is known.
        ({"aux_output_count": 1, "amount_charged": 1999}, ("agree", "", 1999)),
        ({"output_usage_type": 2, "amount_charged": 1999}, ("agree", "", 1999)),
    ],
)
def test_lies(fields: dict[str, Any], expected: tuple[str, str, int | None]) -> None:
    assert judged(receipt(**fields)) == expected


def test_another_key_says_nothing() -> None:
    assert judged(receipt(OPERATOR)) == ("nothing", "signature", None)


def test_an_error_costs_nothing() -> None:
    assert judged(receipt(), failed=True) == ("dispute", "amount", 0)
    zero = receipt(actual_input_count=0, actual_output_count=0, amount_charged=0)
    assert judged(zero, failed=True) == ("agree", "", 0)


COUNT = st.integers(0, 2000)


@given(COUNT, COUNT, COUNT)
def test_what_the_wire_charges_is_agreed_to_and_no_more(read: int, said: int, cached: int) -> None:
    ticket = msgspec.structs.asdict(TICKET)
    due = prices.charge(ticket, read, said, min(cached, read))
    counts = {
        "actual_input_count": read,
        "actual_output_count": said,
        "cached_input_count": min(cached, read),
    }
    assert judged(receipt(**counts, amount_charged=due)) == ("agree", "", due)
    assert judged(receipt(**counts, amount_charged=due + 1))[0] == "dispute"
