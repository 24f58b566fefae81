"""Receipts: signed, charged by the wire's formula, and in the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.core.relay.records.canonical import public_of
from relaydesk.core.relay.records.receipt import check_receipt
from relaydesk.core.relay.records.ticket import Ticket
from relaydesk.engine.relay.target.receipts import Measured, book, receipt_of
from tests.support.ledger_rig import ANN, LedgerRig

SEED = bytes(range(32))
HASH = "ab" * 32
TICKET = Ticket(
    ticket_id="AAAAAAAAAAAAAAAAAAAAAA==", operator_id=1, node_id=0, input_count=100, max_output_count=10,
    input_rate=500_000, output_rate=2_000_000, max_price=70, min_price=0, expires_at=0, model="m",
    commit_k="", cache_read_rate=500_000,
)  # fmt: skip


def test_what_was_measured_is_what_is_said() -> None:
    receipt = receipt_of(TICKET, Measured(7, 3, 0, 120, 900), HASH, SEED)
    # 3.5 rounded up, and 6.
    assert receipt.amount_charged == 4 + 6
    assert (receipt.actual_input_count, receipt.actual_output_count) == (7, 3)
    assert (receipt.ttft_ms, receipt.decode_ms, receipt.body_hash) == (120, 900, HASH)
    assert (receipt.input_usage_type, receipt.output_usage_type, receipt.aux_output_count) == (1, 1, 0)
    assert check_receipt(receipt, TICKET, public_of(SEED), HASH) is None


def test_never_more_than_the_ticket_and_nothing_for_nothing() -> None:
    assert receipt_of(TICKET, Measured(10_000, 10_000), HASH, SEED).amount_charged == 50 + 20
    assert receipt_of(TICKET, Measured(ttft_ms=5), HASH, SEED).amount_charged == 0
    assert receipt_of(TICKET, Measured(5, 0, 9), HASH, SEED).cached_input_count == 5


async def test_it_is_the_nodes_claim(tmp_path: Path) -> None:
    rig = LedgerRig(tmp_path)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 1000)
    tx_id, terms = await rig.open(ledger, ANN, 70)
    receipt = receipt_of(TICKET, Measured(7, 3, 0, 120, 900), HASH, SEED)
    await book(ledger, tx_id, receipt)
    ticket = await ledger.ticket(tx_id)
    assert ticket is not None and ticket.receipt is not None
    values = ticket.receipt.claim.values
    assert (values.amount, values.input_count, values.output_count, values.decode_ms) == (10, 7, 3, 900)
    assert terms.max_price == 70
    await rig.close()


async def test_books_that_refuse_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rig = LedgerRig(tmp_path)
    ledger = await rig.start()
    await book(ledger, "A" * 52, receipt_of(TICKET, Measured(7, 3), HASH, SEED))
    assert "unknown_ticket" in caplog.text
    await rig.close()
    await book(ledger, "A" * 52, receipt_of(TICKET, Measured(7, 3), HASH, SEED))
    assert caplog.text.count("not in the ledger") == 2
