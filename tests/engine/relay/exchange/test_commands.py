from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.core.codec import convert
from relaydesk.core.commands import FetchStatement
from relaydesk.core.ledger.statement import Statement
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.exchange import commands as module
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.engine.relay.exchange.commands import AccountCommands
from tests.support.paid_world import WORDS, paid_world


async def test_a_statement_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 2)
    async with paid_world(tmp_path) as world:
        world.announce()
        await world.voucher(100_000)
        assert await world.ask() == WORDS
        payer, dispatcher = world.payer, Dispatcher()
        AccountCommands(Accounts(payer.asker, payer.purse, PyrageAge(), payer.clock)).register(dispatcher)
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
