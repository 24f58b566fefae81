from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.ledger.extensions import (
    MOST_SETTLEMENTS,
    LedgerNote,
    Settled,
    claim_json,
    open_json,
    protest_json,
    read_note,
    read_open,
    read_settlements,
    record_of,
)
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.terms import Terms
from tests.support.ledger_rig import ANN, VALUES, claim_request, open_request, protest_request, ticket_id

TERMS = Terms(ticket_id(1), ANN.address, "m", 7, 1_700_000_300)
OPEN, _TX = open_request(TERMS, ANN)
CLAIM = claim_request("A" * 52, ticket_id(1), VALUES, ANN)
PROTEST = protest_request("A" * 52, ticket_id(1), ANN)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=90),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def test_what_is_written_is_read() -> None:
    shown = open_json(OPEN.record, OPEN.sig)
    assert set(shown) == {"ticket_id", "operator", "node", "payer", "max_price", "expires_at", "sig"}
    assert read_open(json.dumps(shown).encode()) == OPEN
    claim: Any = record_of(CLAIM)
    protest: Any = record_of(PROTEST)
    items = [claim_json(claim, CLAIM.sig), protest_json(protest, PROTEST.sig)]
    assert [item["kind"] for item in items] == ["claim", "protest"]
    assert read_settlements(json.dumps(items).encode()) == (CLAIM, PROTEST)
    note = LedgerNote(5, 0, 5, "", (Settled("A" * 52, "settled"),))
    assert read_note(msgspec.json.encode(note)) == note


def test_a_newer_sender_may_say_more() -> None:
    shown = {**open_json(OPEN.record, OPEN.sig), "new": {"x": 1}}
    assert read_open(json.dumps(shown).encode()) == OPEN


@given(JUNK, st.sampled_from(sorted(open_json(OPEN.record, OPEN.sig))))
def test_junk_in_an_open_record_is_refused(junk: Any, field: str) -> None:
    shown = {**open_json(OPEN.record, OPEN.sig), field: junk}
    for body in (shown, junk):
        # Either it is refused as what it is, or it is a record that can be signed.
        with contextlib.suppress(LedgerRefusal):
            read_open(msgspec.json.encode(body)).record.canonical()


@given(JUNK, st.sampled_from(sorted(claim_json(record_of(CLAIM), CLAIM.sig))))  # type: ignore[arg-type]
def test_junk_in_a_claim_is_refused(junk: Any, field: str) -> None:
    shown = {**claim_json(record_of(CLAIM), CLAIM.sig), field: junk}  # type: ignore[arg-type]
    with contextlib.suppress(LedgerRefusal):
        for item in read_settlements(msgspec.json.encode([shown])):
            record_of(item)


@pytest.mark.parametrize("count", [MOST_SETTLEMENTS + 1, 10_000])
def test_too_many_at_once(count: int) -> None:
    shown = claim_json(record_of(CLAIM), CLAIM.sig)  # type: ignore[arg-type]
    with pytest.raises(LedgerRefusal):
        read_settlements(json.dumps([shown] * count).encode())
    assert len(read_settlements(json.dumps([shown] * MOST_SETTLEMENTS).encode())) == MOST_SETTLEMENTS


def test_a_hostile_note() -> None:
    for body in (
        '{"balance":-1,"held":0}',
        '{"balance":1e30,"held":0}',
        '{"balance":1,"held":0,"refused":"%s"}' % ("x" * 99),
    ):
        with pytest.raises(LedgerRefusal):
            read_note(body.encode())
