"""The real asking side, relay and target together, with credit: both books agree at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from tests.support.paid_world import WORDS, paid_world


async def test_what_is_free_needs_no_credit(tmp_path: Path) -> None:
    async with paid_world(tmp_path, (0, 0)) as world:
        assert await world.ask() == WORDS
        assert [(paid.amount, paid.receipt_ok) for paid in world.payer.paid] == [(0, True)]
        assert await world.sums() == (0, 0, 0, 0)


async def test_without_credit_nothing_is_asked(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        with pytest.raises(FaultError) as caught:
            await world.ask()
        assert caught.value.fault.code == "credit_missing"
        assert world.payer.paid == []


async def test_credit_becomes_earnings_ticket_by_ticket(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        await world.voucher(100_000)
        for number in range(3):
            assert await world.ask(f"question {number}") == WORDS
        # The claims of the first two went with the reserves behind them; the last one's waits.
        spent = [paid.amount for paid in world.payer.paid]
        assert all(amount > 0 for amount in spent)
        issued, balance, held, earned = await world.sums()
        assert issued == 100_000
        assert earned >= sum(spent[:2])
        assert balance + held == 100_000 - earned
        assert await world.ask() == WORDS
        _, _, _, earned = await world.sums()
        assert earned >= sum(spent)
        (account,) = await world.payer.purse.accounts()
        assert account.ref == world.target.ref


async def test_many_at_once_on_one_account(tmp_path: Path) -> None:
    async with paid_world(tmp_path, (0, 0)) as world:
        outcomes = await asyncio.gather(*(world.ask(f"{n}") for n in range(8)), return_exceptions=True)
        assert WORDS in outcomes
        for each in outcomes:
            # Its slots are few, and it says so.
            assert each == WORDS or (isinstance(each, FaultError) and each.fault.code == "operators_busy")
        assert sum(paid.receipt_ok for paid in world.payer.paid) >= outcomes.count(WORDS)
