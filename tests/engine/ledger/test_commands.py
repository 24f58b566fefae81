from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.codec import convert
from relaydesk.core.commands import (
    Command,
    IssueCredit,
    ResolveDispute,
    ShowLedger,
    ShowStatement,
)
from relaydesk.core.ledger.extensions import LedgerNote
from relaydesk.core.ledger.statement import Statement, fault_in
from relaydesk.core.ledger.voucher import VoucherCode
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.view.ledger import LedgerView
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.ledger import commands as module
from relaydesk.engine.ledger.commands import LedgerCommands
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.engine.ledger.purse import Purse
from relaydesk.store.db import Database
from relaydesk.store.secrets import FileSecrets
from tests.support.ledger_rig import ANN, BOB, REF, VALUES, LedgerRig, protest_request


class Desk:
    def __init__(self, ledger: Ledger, purse: Purse) -> None:
        self.ledger = ledger
        self.purse = purse
        self.dispatcher = Dispatcher()
        LedgerCommands(ledger, purse).register(self.dispatcher)

    async def done(self, command: Command) -> Any:
        outcome = await self.dispatcher.call(command)
        assert outcome.ok, outcome.fault
        return outcome.value

    async def failed(self, command: Command) -> str:
        outcome = await self.dispatcher.call(command)
        assert outcome.fault is not None
        return outcome.fault.code


@pytest.fixture
async def desk(rig: LedgerRig, tmp_path: Path) -> AsyncIterator[Desk]:
    database, secrets = Database(tmp_path / "payer.db"), FileSecrets(tmp_path)
    await database.open()
    secrets.prepare()
    purse = Purse(database, secrets, rig.clock, rig.rng, rig.bus, AlertBoard(rig.clock, rig.bus))
    await purse.start()
    yield Desk(await rig.start(), purse)
    await database.close()


async def test_credit_and_balance(desk: Desk) -> None:
    made = await desk.done(IssueCredit(700, note="ann"))
    assert await desk.ledger.redeem(ANN.address, made["code"]) == 700
    view = convert(await desk.done(ShowLedger()), LedgerView)
    assert (view.issued, view.balance, view.accounts[0].note) == (700, 700, "ann")
    assert await desk.failed(IssueCredit(0)) == "invalid_request"


async def test_what_was_handed_in_is_shown_with_what_became_of_it(desk: Desk) -> None:
    made = await desk.done(IssueCredit(700))
    await desk.purse.add_voucher(made["code"])
    view = convert(await desk.done(ShowLedger()), LedgerView)
    assert (view.credit[0].payer, view.credit[0].waiting) == ((await desk.purse.key(REF.operator)).address, 1)
    await desk.purse.told(REF, LedgerNote(0, 0, None, "voucher_used"), await desk.purse.extras(REF))
    view = convert(await desk.done(ShowLedger()), LedgerView)
    (refused,) = view.refused
    assert (refused.operator, refused.node) == REF
    assert refused.why == "the voucher was redeemed for another account"
    assert (view.credit[0].waiting, view.balance, view.vouchers[0].amount) == (0, 0, 700)


async def test_statements_by_page(desk: Desk, rig: LedgerRig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await desk.failed(ShowStatement()) == "not_found"
    monkeypatch.setattr(module, "PAGE", 2)
    await rig.credit(desk.ledger, ANN, 5)
    for _ in range(4):
        await rig.open(desk.ledger, ANN, 1)
    first = convert(await desk.done(ShowStatement()), Statement)
    assert (first.statement.rows, len(first.rows)) == (5, 2)
    rows = first.rows
    for after in (2, 4):
        rows += convert(await desk.done(ShowStatement(ANN.address[:9].lower(), after)), Statement).rows
    assert fault_in(Statement(first.statement, rows)) == ""
    await rig.credit(desk.ledger, BOB, 5)
    assert await desk.failed(ShowStatement()) == "invalid_request"
    assert await desk.failed(ShowStatement("0")) == "not_found"


async def test_a_payers_statement_is_at_its_target(desk: Desk) -> None:
    await desk.purse.add_voucher(VoucherCode(NodeRef(77, 2), bytes(20)).text)
    address = (await desk.purse.key(77)).address
    for given in ("", address[:9].lower()):
        fault = (await desk.dispatcher.call(ShowStatement(given))).fault
        assert fault is not None
        assert fault.code == "not_found"
        assert "`relaydesk ledger statement --at 77:2`" in fault.hint
    fault = (await desk.dispatcher.call(ShowStatement("0"))).fault
    assert fault is not None
    assert "--at" not in fault.hint
    await desk.purse.add_voucher(VoucherCode(NodeRef(78, 2), bytes(20)).text)
    fault = (await desk.dispatcher.call(ShowStatement())).fault
    assert fault is not None
    assert "--at OPERATOR:NODE`" in fault.hint


async def test_disputes(desk: Desk, rig: LedgerRig) -> None:
    await rig.credit(desk.ledger, ANN, 100)
    tx_id, terms = await rig.open(desk.ledger, ANN)
    assert await desk.failed(ResolveDispute(tx_id, 0)) == "conflict"
    assert await desk.failed(ResolveDispute("A" * 52, 0)) == "not_found"
    await desk.ledger.receipt(tx_id, VALUES)
    await desk.ledger.protest(protest_request(tx_id, terms.ticket_id, ANN))
    told = await desk.done(ResolveDispute(tx_id, 30))
    assert told == {"tx_id": tx_id, "earned": 30, "refunded": 70}
