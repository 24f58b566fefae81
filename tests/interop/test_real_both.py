"""The real asking side, relay and target together, with credit: both books agree at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.relay.ref import Listed, NodeRef
from tests.support.exchange_rig import ExchangeRig, text_of
from tests.support.hop_rig import HopRig
from tests.support.lab_relay import address
from tests.support.scripted_engine import answer
from tests.support.target_rig import MODEL, TargetRig

RELAY = NodeRef(201, 1)
PRICED = (500_000, 2_000_000)
WORDS = "a heron in water"


class World:
    def __init__(self, payer: ExchangeRig, target: TargetRig) -> None:
        self.payer, self.target = payer, target

    async def ask(self, text: str = "hello") -> str:
        body = self.payer.body(text, model=MODEL)
        return text_of(await self.payer.stream(body, model=MODEL))

    async def voucher(self, amount: int) -> None:
        await self.payer.purse.add_voucher(await self.target.ledger.issue(amount))

    async def sums(self) -> tuple[int, int, int, int]:
        """Issued, balance, held, earned: checked against each other."""
        await self.target.ledger.refresh()
        view = self.target.ledger.view()
        assert view.issued == view.balance + view.held + view.earned + view.fees
        return view.issued, view.balance, view.held, view.earned


@asynccontextmanager
async def world_of(folder: Path, rates: tuple[int, int] = PRICED) -> AsyncIterator[World]:
    for name in ("target", "payer"):
        (folder / name).mkdir()
    async with (
        TargetRig(folder / "target", rates=rates) as target,
        HopRig() as relay,
        ExchangeRig(folder / "payer", (), relays=0) as payer,
    ):
        target.hub.starter.reply = lambda _: answer("a", " heron", " in", " water")
        identity = target.identity
        relay.directory.listed.append(
            Listed(target.ref, identity.owner_addr, identity.signing_addr, target.url)
        )
        payer.enlist(target.ref, identity.owner_addr, identity.signing_addr, target.url)
        key = address(b"relay" + bytes(27))
        payer.enlist(RELAY, key, key, relay.url)
        await payer.probe(target.ref)
        yield World(payer, target)
        await target.rest()


async def test_what_is_free_needs_no_credit(tmp_path: Path) -> None:
    async with world_of(tmp_path, (0, 0)) as world:
        assert await world.ask() == WORDS
        assert [(paid.amount, paid.receipt_ok) for paid in world.payer.paid] == [(0, True)]
        assert await world.sums() == (0, 0, 0, 0)


async def test_without_credit_nothing_is_asked(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
        with pytest.raises(FaultError) as caught:
            await world.ask()
        assert caught.value.fault.code == "credit_missing"
        assert world.payer.paid == []


async def test_credit_becomes_earnings_ticket_by_ticket(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
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
    async with world_of(tmp_path, (0, 0)) as world:
        outcomes = await asyncio.gather(*(world.ask(f"{n}") for n in range(8)), return_exceptions=True)
        assert WORDS in outcomes
        for each in outcomes:
            # Its slots are few, and it says so.
            assert each == WORDS or (isinstance(each, FaultError) and each.fault.code == "operators_busy")
        assert sum(paid.receipt_ok for paid in world.payer.paid) >= outcomes.count(WORDS)
