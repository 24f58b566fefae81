"""The answer to a reserve: a ticket, a wrapped key, and what may be left out."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.reserve_response import ReserveResponse, decode_response, encode_response
from relaydesk.core.relay.records.ticket import Ticket
from tests.support.mutants import survives

TICKET: dict[str, Any] = {
    "ticket_id": base64.b64encode(bytes(16)).decode(), "operator_id": 1, "node_id": 0, "input_count": 1,
    "max_output_count": 2, "input_rate": 3, "output_rate": 4, "max_price": 5, "min_price": 6, "expires_at": 7,
    "model": "m", "stream": False, "commit_k": base64.b64encode(bytes(32)).decode(), "input_usage_type": 1,
    "output_usage_type": 1, "cache_read_rate": 0, "sig": "c2ln",
}  # fmt: skip
SAID: dict[str, Any] = {"ticket": TICKET, "wrapped_response_key": "a2V5"}


def test_what_is_written() -> None:
    plain = ReserveResponse(ticket=Ticket(**TICKET), wrapped_response_key="a2V5")
    assert json.loads(encode_response(plain)) == SAID
    full = ReserveResponse(
        ticket=Ticket(**TICKET),
        wrapped_response_key="a2V5",
        presigned_open_txn="b3Blbg==",
        algo_usd_price=0.25,
    )
    assert json.loads(encode_response(full)) == {
        **SAID, "presigned_open_txn": "b3Blbg==", "algo_usd_price": 0.25
    }  # fmt: skip
    ours = ReserveResponse(
        ticket=Ticket(**TICKET),
        wrapped_response_key="a2V5",
        relaydesk_ledger=msgspec.Raw(b'{"balance":1,"held":0}'),
    )
    assert json.loads(encode_response(ours)) == {**SAID, "relaydesk_ledger": {"balance": 1, "held": 0}}
    assert decode_response(encode_response(ours)).ledger == b'{"balance":1,"held":0}' and plain.ledger == b""
    for made in (plain, full):
        assert decode_response(encode_response(made)) == made


@pytest.mark.parametrize(
    "change",
    [
        {"ticket": None},
        {"ticket": {**TICKET, "max_price": -1}},
        {"ticket": {**TICKET, "ticket_id": "x"}},
        {"wrapped_response_key": None},
        {"wrapped_response_key": "?"},
        {"wrapped_response_key": "A" * 4100},
        {"presigned_open_txn": "?"},
        {"presigned_open_txn": "A" * 16388},
        {"presigned_open_txn": 3},
        {"algo_usd_price": "1"},
    ],
)
def test_what_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(RecordError):
        decode_response(json.dumps({**SAID, **change}).encode())


def test_null_and_unknown_fields_are_ignored() -> None:
    said = {**SAID, "presigned_open_txn": None, "algo_usd_price": 1, "zs_new": {}}
    assert decode_response(json.dumps(said).encode()).algo_usd_price == 1.0
    assert decode_response(json.dumps({**SAID, "presigned_open_txn": ""}).encode()).presigned_open_txn == ""


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    sample = json.dumps({**SAID, "presigned_open_txn": "b3Blbg=="}).encode()
    survives(decode_response, RecordError, sample, count)
