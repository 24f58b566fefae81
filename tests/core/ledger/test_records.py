from __future__ import annotations

import base64
import hashlib

import msgspec
import pytest

from relaydesk.core.ledger.extensions import record_of
from relaydesk.core.ledger.records import OpenRecord, check_signature, signature, ticket_bytes
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.terms import Terms
from relaydesk.core.relay.records.canonical import RecordError
from tests.support.ledger_rig import (
    ANN,
    BOB,
    VALUES,
    claim_request,
    open_bytes,
    open_request,
    protest_request,
    ticket_id,
)

TERMS = Terms(ticket_id(1), ANN.address, "m", 7, 1_700_000_300)


def test_the_open_record_and_its_transaction() -> None:
    request, tx_id = open_request(TERMS, ANN)
    record = request.record
    assert record.canonical() == open_bytes(TERMS)
    assert record.tx_id() == tx_id
    assert len(tx_id) == 52
    digest = base64.b32decode(tx_id + "====")
    assert digest == hashlib.sha256(open_bytes(TERMS)).digest()
    # The same key over the same bytes: Ed25519 is one function in every library.
    assert signature(ANN, record) == request.sig


@pytest.mark.parametrize("field", OpenRecord.__struct_fields__)
def test_every_field_is_signed(field: str) -> None:
    record = open_request(TERMS, ANN)[0].record
    value = getattr(record, field)
    other = ticket_id(2) if field == "ticket_id" else BOB.address if field == "payer" else value + 1
    assert msgspec.structs.replace(record, **{field: other}).tx_id() != record.tx_id()


@pytest.mark.parametrize("kind", ["claim", "protest"])
def test_what_settles_is_signed_as_it_is_written_down(kind: str) -> None:
    make = {
        "claim": lambda key: claim_request("A" * 52, ticket_id(1), VALUES, key),
        "protest": lambda key: protest_request("A" * 52, ticket_id(1), key),
    }[kind]
    item = make(ANN)
    check_signature(ANN.address, record_of(item), item.sig)
    with pytest.raises(LedgerRefusal, match="bad_signature"):
        check_signature(ANN.address, record_of(item), make(BOB).sig)
    with pytest.raises(LedgerRefusal, match="bad_record"):
        check_signature("nobody", record_of(item), item.sig)


@pytest.mark.parametrize(
    "text", ["", "x", base64.b64encode(b"short").decode(), ticket_id(1) + "\n", "ä" * 24]
)
def test_ids_that_are_none(text: str) -> None:
    with pytest.raises(RecordError):
        ticket_bytes(text)
