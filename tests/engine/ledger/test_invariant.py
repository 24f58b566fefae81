"""In whatever order, by whom, over crashes and with clocks that jump: nothing is made or lost.

A small model says beside the ledger what every call must come to. It knows no rows, signatures or
transactions, only who has what.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.ledger import ticket as rules
from relaydesk.core.ledger.records import Values
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import fault_in
from relaydesk.core.ledger.terms import Policy, Terms
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.engine.tasks import spawn
from tests.support.ledger_rig import (
    ANN,
    BOB,
    VALUES,
    Key,
    LedgerRig,
    claim_request,
    open_request,
    protest_request,
)

FEE_BPS = 2000
PAYERS = (ANN, BOB)


@dataclass
class ModelTicket:
    payer: Key
    terms: Terms
    tx_id: str
    left_s: float
    state: str = "open"
    receipt: int | None = None
    receipt_s: float = 0.0
    node: int | None = None
    said: int | None = None
    protested: bool = False


@dataclass
class Model:
    """Who has what. Times are in seconds of a clock that only goes forward."""

    now: float = 0.0
    vouchers: list[list[Any]] = field(default_factory=list)
    free: dict[str, int] = field(default_factory=lambda: {key.address: 0 for key in PAYERS})
    tickets: list[ModelTicket] = field(default_factory=list)
    earned: int = 0
    fees: int = 0

    def end(self, ticket: ModelTicket, state: str, amount: int) -> None:
        fee = amount * FEE_BPS // 10_000
        ticket.state = state
        self.free[ticket.payer.address] += ticket.terms.max_price - amount - fee
        self.earned += amount
        self.fees += fee

    def agree(self, ticket: ModelTicket) -> None:
        ticket.state = "pending_settle"
        if ticket.node is None or ticket.said is None:
            return
        if ticket.node == ticket.said:
            self.end(ticket, "settled", ticket.node)
        else:
            ticket.state = "frozen"

    def file(self, ticket: ModelTicket) -> None:
        if ticket.receipt is not None and ticket.node is None and ticket.state in ("open", "pending_settle"):
            ticket.node = ticket.receipt
            self.agree(ticket)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for ticket in self.tickets:
            live = ticket.state in ("open", "pending_settle")
            if live and ticket.receipt is not None and self.now >= ticket.receipt_s + 30:
                self.file(ticket)
            if ticket.state in ("open", "pending_settle") and self.now >= ticket.left_s:
                self.file(ticket)
                if ticket.state == "pending_settle" and ticket.node is not None:
                    self.end(ticket, "lapsed", ticket.node)
                elif ticket.state in ("open", "pending_settle"):
                    self.end(ticket, "refunded", 0)


Op = tuple[str, int, int]
OPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "issue",
                "redeem",
                "open",
                "reopen",
                "receipt",
                "claim",
                "protest",
                "resolve",
                "lapse",
                "time",
                "jump",
                "restart",
                "crash",
            )
        ),
        st.integers(0, 5),
        st.integers(0, 60),
    ),
    min_size=5,
    max_size=35,
)


def values(amount: int) -> Values:
    return msgspec.structs.replace(VALUES, amount=amount)


class Run:
    """One ledger beside its model."""

    def __init__(self, directory: Path) -> None:
        self.rig = LedgerRig(directory)
        self.rig.policy = lambda: Policy(fee_bps=FEE_BPS)
        self.model = Model()
        self.ledger: Ledger

    def plan(self, op: Op) -> tuple[Any, Any] | None:
        """The call to make, and what it does to the model, which raises where it must be refused."""
        kind, which, amount = op
        tickets = self.model.tickets
        payer = PAYERS[which % 2]
        if kind == "redeem":
            return self.plan_redeem(which, payer)
        if kind == "open":
            terms = self.rig.terms(payer, amount % 25, life_s=100)
            return self.plan_open(terms, payer, self.model.now + 100 + 600)
        if not tickets:
            return None
        ticket = tickets[which % len(tickets)]
        if kind == "reopen":
            return self.plan_open(ticket.terms, ticket.payer, 0)
        plans = {
            "receipt": self.plan_receipt,
            "claim": self.plan_claim,
            "protest": self.plan_protest,
            "resolve": self.plan_resolve,
            "lapse": self.plan_lapse,
        }
        return plans[kind](ticket, amount % 7) if kind in plans else None

    def plan_redeem(self, which: int, payer: Key) -> tuple[Any, Any] | None:
        if not self.model.vouchers:
            return None
        at = which % len(self.model.vouchers)
        code = self.model.vouchers[at][0]

        def then(model: Model) -> None:
            voucher = model.vouchers[at]
            if voucher[2] is None:
                voucher[2] = payer.address
                model.free[payer.address] += voucher[1]
            elif voucher[2] != payer.address:
                raise LedgerRefusal("voucher_used")

        return lambda: self.ledger.redeem(payer.address, code), then

    def plan_open(self, terms: Terms, payer: Key, left_s: float) -> tuple[Any, Any]:
        request, tx_id = open_request(terms, payer)

        def then(model: Model) -> None:
            known = next((each for each in model.tickets if each.tx_id == tx_id), None)
            wall = self.rig.clock.wall_ms() // 1000
            if not wall < terms.expires_at + 600 or terms.expires_at > wall + 3600:
                raise LedgerRefusal("expired")
            if known is not None:
                raise LedgerRefusal("replayed")
            if model.free[payer.address] < terms.max_price:
                raise LedgerRefusal("not_enough_credit")
            model.free[payer.address] -= terms.max_price
            model.tickets.append(ModelTicket(payer, terms, tx_id, left_s))

        return lambda: self.ledger.open_(terms, request, tx_id), then

    def plan_receipt(self, ticket: ModelTicket, amount: int) -> tuple[Any, Any]:
        at = self.model.tickets.index(ticket)

        def then(model: Model) -> None:
            found = model.tickets[at]
            if found.receipt is not None:
                if found.receipt != amount:
                    raise LedgerRefusal("claim_differs")
                return
            if found.state not in ("open", "pending_settle", "frozen"):
                raise LedgerRefusal("ended")
            if amount + amount * FEE_BPS // 10_000 > found.terms.max_price:
                raise LedgerRefusal("over_price")
            found.receipt, found.receipt_s = amount, model.now
            if found.said is not None and found.state != "frozen":
                model.file(found)

        return lambda: self.ledger.receipt(ticket.tx_id, values(amount)), then

    def plan_claim(self, ticket: ModelTicket, amount: int) -> tuple[Any, Any]:
        at = self.model.tickets.index(ticket)
        item = claim_request(ticket.tx_id, ticket.terms.ticket_id, values(amount), ticket.payer)

        def then(model: Model) -> None:
            found = model.tickets[at]
            if found.said is not None:
                if found.said != amount:
                    raise LedgerRefusal("claim_differs")
                return
            if found.state not in ("open", "pending_settle"):
                raise LedgerRefusal("frozen" if found.state == "frozen" else "ended")
            if amount + amount * FEE_BPS // 10_000 > found.terms.max_price:
                raise LedgerRefusal("over_price")
            found.said = amount
            if found.node is None and found.receipt is not None:
                found.node = found.receipt
            model.agree(found)

        return lambda: self.ledger.settle(item), then

    def plan_protest(self, ticket: ModelTicket, _amount: int) -> tuple[Any, Any]:
        at = self.model.tickets.index(ticket)
        item = protest_request(ticket.tx_id, ticket.terms.ticket_id, ticket.payer)

        def then(model: Model) -> None:
            found = model.tickets[at]
            if found.protested:
                return
            if found.state not in ("open", "pending_settle"):
                raise LedgerRefusal("frozen" if found.state == "frozen" else "ended")
            found.protested, found.state = True, "frozen"

        return lambda: self.ledger.protest(item), then

    def plan_resolve(self, ticket: ModelTicket, amount: int) -> tuple[Any, Any]:
        at = self.model.tickets.index(ticket)

        def then(model: Model) -> None:
            found = model.tickets[at]
            if found.state != "frozen":
                raise LedgerRefusal("not_frozen")
            if amount > (found.receipt or 0):
                raise LedgerRefusal("over_price")
            model.end(found, "resolved", amount)

        return lambda: self.ledger.resolve(ticket.tx_id, amount), then

    def plan_lapse(self, ticket: ModelTicket, _amount: int) -> tuple[Any, Any]:
        at = self.model.tickets.index(ticket)

        def then(model: Model) -> None:
            # Whatever is over has ended already: time passes only with `due` after it.
            if model.tickets[at].state in ("open", "pending_settle"):
                raise LedgerRefusal("too_early")

        return lambda: self.ledger.lapse(ticket.tx_id), then

    async def do(self, op: Op, crash: bool = False) -> bool:
        """One operation. Says whether it was one that could crash."""
        kind, which, amount = op
        if kind == "issue":
            self.model.vouchers.append([await self.ledger.issue(amount + 1), amount + 1, None])
        elif kind == "time":
            seconds = (1, 10, 29, 31, 650, 800)[which]
            self.rig.clock.advance(seconds)
            await self.ledger.due()
            self.model.pass_time(seconds)
        elif kind == "jump":
            # Put right before the next restart, which tells what is left from the wall clock again.
            self.rig.clock.set_wall_ms(self.rig.clock.wall_ms() + (which - 2) * 86_400_000)
            await self.ledger.due()
            for at in range(len(self.model.tickets)):
                await self.call(*self.plan_lapse(self.model.tickets[at], 0))
            self.rig.clock.set_wall_ms(self.rig.clock.wall_ms() - (which - 2) * 86_400_000)
        elif kind == "restart":
            self.ledger = await self.rig.start()
        elif (plan := self.plan(op)) is not None:
            await (self.crash(*plan) if crash else self.call(*plan))
            return True
        return False

    async def call(self, call: Any, then: Any) -> None:
        expected = ""
        after = copy.deepcopy(self.model)
        try:
            then(after)
        except LedgerRefusal as refusal:
            expected = refusal.code
        got = ""
        try:
            await call()
        except LedgerRefusal as refusal:
            got = refusal.code
        assert got == expected
        if not expected:
            self.model = after

    async def crash(self, call: Any, then: Any) -> None:
        """The process ends while a call is under way: afterwards it was done, or it was not."""
        under_way = spawn(call(), name="call")
        await asyncio.sleep(0)
        self.ledger = await self.rig.start()
        under_way.cancel()
        with contextlib.suppress(asyncio.CancelledError, LedgerRefusal):
            await under_way
        after = copy.deepcopy(self.model)
        with contextlib.suppress(LedgerRefusal):
            then(after)
        # What was handed to the old process's thread may still come: the new one sees it as done then.
        await self.rig.started[-2].close()
        self.ledger = await self.rig.start()
        if await self.same(after):
            self.model = after

    async def same(self, model: Model) -> bool:
        totals = await self.ledger.totals()
        held = sum(
            t.terms.max_price for t in model.tickets if t.state in ("open", "pending_settle", "frozen")
        )
        books = (totals.balance, totals.held, totals.earned, totals.fees)
        if books != (sum(model.free.values()), held, model.earned, model.fees):
            return False
        for ticket in model.tickets:
            found = await self.ledger.ticket(ticket.tx_id)
            if found is None or found.state != ticket.state:
                return False
            noted = None if found.receipt is None else found.receipt.claim.values.amount
            said = None if found.payer_claim is None else found.payer_claim.claim.values.amount
            if (noted, said) != (ticket.receipt, ticket.said):
                return False
        return [(await self.ledger.balance(key))[0] for key in model.free] == list(model.free.values())

    async def check(self) -> None:
        totals = await self.ledger.totals()
        assert totals.issued == totals.balance + totals.held + totals.earned + totals.fees
        assert totals.issued == sum(amount for _, amount, payer in self.model.vouchers if payer is not None)
        assert await self.same(self.model)


async def play(ops: list[Op]) -> None:
    # Thousands of synced commits: in memory where that can be.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        run = Run(Path(directory))
        run.ledger = await run.rig.start()
        try:
            await run.do(("issue", 0, 59))
            await run.do(("redeem", 0, 0))
            crash = False
            for op in ops:
                if op[0] == "crash":
                    crash = True
                    continue
                crash &= not await run.do(op, crash)
                await run.check()
            for key in PAYERS:
                assert fault_in(await run.ledger.statement(key.address)) == ""
            # Whatever was left open ends by itself, and what was frozen is for the operator to end.
            await run.do(("time", 5, 0))
            await run.check()
            for ticket in run.model.tickets:
                assert ticket.state not in ("open", "pending_settle")
            last = await run.rig.start()
            assert (await last.totals()) == (await run.ledger.totals())
        finally:
            await run.rig.close()


@settings(max_examples=60, deadline=None)
@given(OPS)
def test_nothing_is_made_or_lost(ops: list[Op]) -> None:
    asyncio.run(play(ops))


@pytest.mark.long
@settings(max_examples=1500, deadline=None)
@given(OPS)
def test_nothing_is_made_or_lost_at_length(ops: list[Op]) -> None:
    asyncio.run(play(ops))


def test_the_model_sees_a_broken_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fee that the books forget, a claim that is believed alone, a hold that is paid back twice."""
    ops: list[Op] = [
        ("open", 0, 24),
        ("receipt", 0, 6),
        ("claim", 0, 6),
        ("open", 0, 20),
        ("claim", 1, 5),
        ("time", 5, 0),
    ]
    asyncio.run(play(ops))
    with monkeypatch.context() as broken:
        broken.setattr(rules, "fee_of", lambda amount, fee_bps: amount)
        with pytest.raises(AssertionError):
            asyncio.run(play(ops))
    with monkeypatch.context() as broken:
        broken.setattr(rules, "file_receipt", lambda ticket, node, now_ms: rules.Step(ticket))
        with pytest.raises(AssertionError):
            asyncio.run(play(ops))
