from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.core.codec import convert
from relaydesk.core.commands import FetchStatement, RedeemCredit
from relaydesk.core.ledger.statement import Statement
from relaydesk.core.ledger.voucher import VoucherCode
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.exchange import commands as module
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.engine.relay.exchange.commands import AccountCommands
from relaydesk.engine.relay.exchange.redeemer import Redeemer
from tests.support.exchange_rig import ExchangeRig
from tests.support.paid_world import WORDS, paid_world


def _commands(payer: ExchangeRig) -> AccountCommands:
    accounts = Accounts(payer.asker, payer.purse, PyrageAge(), payer.clock)
    return AccountCommands(accounts, Redeemer(accounts, payer.asker, payer.purse))


async def test_a_statement_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 2)
    async with paid_world(tmp_path) as world:
        world.announce()
        await world.voucher(100_000)
        assert await world.ask() == WORDS
        payer, dispatcher = world.payer, Dispatcher()
        _commands(payer).register(dispatcher)
        ref = str(world.target.ref)
        first = await dispatcher.call(FetchStatement(ref))
        assert first.ok and first.value["disagreement"] == ""
        page = convert(first.value, Statement)
        rows = list(page.rows)
        # What is booked meanwhile is in none of its pages.
        assert await world.ask() == WORDS
        while len(rows) < page.statement.rows:
            more = convert((await dispatcher.call(FetchStatement(ref, len(rows)))).value, Statement)
            assert more.statement == page.statement
            rows += more.rows
        assert [row.seq for row in rows] == list(range(1, page.statement.rows + 1))
        again = convert((await dispatcher.call(FetchStatement(ref))).value, Statement)
        assert again.statement.rows > page.statement.rows
        refused = await dispatcher.call(FetchStatement("seven"))
        assert refused.fault is not None and refused.fault.code == "invalid_request"


async def test_what_became_of_a_voucher_is_in_the_answer(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        payer, dispatcher, ref = world.payer, Dispatcher(), world.target.ref
        _commands(payer).register(dispatcher)
        code = await world.target.ledger.issue(100_000)
        world.announce(ledger=False)
        told = (await dispatcher.call(RedeemCredit(code))).value
        assert (told["state"], told["amount"]) == ("waiting", 0)
        assert told["why"]
        world.announce()
        told = (await dispatcher.call(RedeemCredit(code))).value
        assert (told["operator"], told["node"]) == ref
        assert (told["state"], told["amount"], told["balance"]) == ("redeemed", 100_000, 100_000)
        assert (told["before"], told["why"]) == (False, "")
        assert (await dispatcher.call(RedeemCredit(code))).value["before"] is True
        refused = await dispatcher.call(RedeemCredit(VoucherCode(NodeRef(*ref), bytes(20)).text))
        assert refused.fault is not None
        assert (refused.fault.code, refused.fault.param) == ("conflict", "code")
        assert refused.fault.message == f"node {ref} refuses the voucher: there is no such voucher"
