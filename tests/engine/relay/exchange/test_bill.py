"""Receipts that lie: what the purse is told of each, and what is owed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import EnvError, FaultError
from tests.support.exchange_rig import ExchangeRig, text_of
from tests.support.wire.lies import Edit, put

# Lie, what is said of it, what the purse does, and what is owed: None for all that may be taken. The honest
# amount is the minimum, 2000.
LIES: dict[str, tuple[str, Edit, str, str, int | None]] = {
    "an amount above the price": ("receipt", put(amount_charged=9_999_999), "price", "claim", 2000),
    "an amount above its counts": ("receipt", put(amount_charged=2001), "price", "claim", 2000),
    "another hash": ("receipt", put(body_hash="0" * 64), "body_hash", "protest", None),
    "another hash, unsigned": ("receipt_sent", put(body_hash="0" * 64), "signature", "", None),
    "no signature": ("receipt_sent", put(sig=""), "signature", "", None),
    "an amount, unsigned": ("receipt_sent", put(amount_charged=1), "signature", "", None),
    "more cached than read": ("receipt", put(cached_input_count=999), "cached", "", None),
    "another ticket": ("receipt", put(ticket_id="A" * 22 + "=="), "ticket", "", None),
    "no hash at all": ("receipt", put(body_hash=""), "unreadable", "", None),
    "numbers that no ledger holds": ("receipt", put(ttft_ms=2**60), "range", "", None),
    "no number": ("receipt_sent", put(amount_charged="1"), "unreadable", "", None),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("lie", LIES)
async def test_a_receipt_that_does_not_hold(tmp_path: Path, lie: str, stream: bool) -> None:
    knob, edit, said, told, owed = LIES[lie]
    async with ExchangeRig(tmp_path) as rig:
        setattr(rig.targets[0].lies, knob, edit)
        with pytest.raises(FaultError) as caught:
            await (rig.stream() if stream else rig.whole())
        assert caught.value.fault.code == "operator_inconsistent_response"
        if lie != "an amount above its counts":
            assert f"({said})" in caught.value.fault.message
        (ticket,) = await rig.tickets()
        assert ("claim" if ticket.claim else "protest" if ticket.protest else "") == told
        assert ticket.state == ("waiting" if told else "open")
        if ticket.claim is not None:
            assert ticket.claim.values.amount == owed
        (paid,) = rig.paid
        assert (paid.amount, paid.receipt_ok) == (paid.max_price if owed is None else owed, False)


async def test_less_than_is_due_is_agreed_to(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.receipt = put(amount_charged=5)
        assert await rig.stream()
        assert (rig.paid[0].amount, rig.paid[0].receipt_ok) == (5, True)


async def test_an_error_that_is_charged_is_disputed(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        rig.targets[0].lies.sealed_error = (503, "provider_overloaded")
        rig.targets[0].lies.receipt = put(amount_charged=100, actual_output_count=3)
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code == "operators_busy"
        (ticket,) = await rig.tickets()
        assert ticket.claim is not None
        assert ticket.claim.values.amount == 0
        assert (rig.paid[0].amount, rig.paid[0].receipt_ok) == (0, False)


async def test_claims_go_with_the_next_reserve_to_a_target_that_keeps_ours(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        target = rig.targets[0]
        target.lies.details = put(relaydesk_ledger=1)
        await rig.probe()
        await rig.stream()
        (first,) = await rig.tickets()
        settled = [{"tx_id": first.tx_id, "state": "settled"}]
        target.lies.reserve_response = put(relaydesk_ledger={"balance": 9_000, "held": 0, "settled": settled})
        await rig.stream()
        states = {ticket.tx_id: (ticket.state, ticket.answer) for ticket in await rig.tickets()}
        assert states.pop(first.tx_id) == ("told", "settled")
        assert [state for state, _ in states.values()] == ["waiting"]


async def test_a_purse_that_fails_loses_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ExchangeRig(tmp_path) as rig:

        async def fail(*_: Any) -> None:
            raise EnvError("storage_failed", "the disk is full")

        monkeypatch.setattr(rig.purse, "claim", fail)
        with caplog.at_level(logging.ERROR):
            assert text_of(await rig.stream()) == rig.targets[0].words.text
        assert "the disk is full" in caplog.text
        assert rig.paid[0].amount == 2000
