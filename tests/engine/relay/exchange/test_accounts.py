"""Our account at a real target, asked about through a real relay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import fault_in
from relaydesk.core.ledger.voucher import VoucherCode
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.ledger import ledger as books
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.asking.peers import Verified
from relaydesk.engine.relay.exchange.accounts import Accounts
from tests.support.paid_world import WORDS, PaidWorld, paid_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[PaidWorld]:
    async with paid_world(tmp_path) as made:
        made.announce()
        yield made


def accounts_of(world: PaidWorld) -> Accounts:
    payer = world.payer
    return Accounts(payer.asker, payer.purse, PyrageAge(), payer.clock)


async def code_of(work: Awaitable[Any]) -> str:
    with pytest.raises(FaultError) as caught:
        await work
    return caught.value.fault.code


async def test_what_waits_is_told_without_a_reserve(world: PaidWorld) -> None:
    accounts, ref = accounts_of(world), world.target.ref
    await world.voucher(100_000)
    assert (await accounts.ask(ref)).relaydesk_ledger.balance == 100_000
    assert await world.ask() == WORDS
    spent = world.payer.paid[0].amount
    assert (await world.payer.purse.accounts())[0].waiting == 1
    note = (await accounts.ask(ref)).relaydesk_ledger
    assert (note.balance, note.held) == (100_000 - spent, 0)
    assert [each.state for each in note.settled] == ["settled"]
    assert (await world.payer.purse.accounts())[0].waiting == 0
    assert (await world.sums())[3] == spent


async def test_a_target_whose_key_is_none_is_told_nothing(
    world: PaidWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever settles in the background goes on to the next one after that."""
    none = "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z"
    monkeypatch.setattr(Verified, "sealing_key", none)
    work = accounts_of(world).ask(world.target.ref)
    assert await code_of(work) == "operator_inconsistent_response"


async def test_a_statement_in_pages_that_our_book_bears_out(
    world: PaidWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "ROWS", 2)
    accounts, ref = accounts_of(world), world.target.ref
    await world.voucher(100_000)
    assert await world.ask() == WORDS
    found = await accounts.statement(ref)
    kinds = [row.kind for row in found.statement.rows]
    assert (kinds[:3], kinds[-1]) == (["redeem", "open", "receipt"], "settle")
    assert (found.disagreement, fault_in(found.statement)) == ("", "")


async def test_a_statement_with_what_we_never_opened(world: PaidWorld) -> None:
    await world.voucher(100_000)
    assert await world.ask() == WORDS
    await world.payer.database.run(lambda conn: conn.execute("DELETE FROM paid_tickets").rowcount)
    found = await accounts_of(world).statement(world.target.ref)
    assert "we have not opened" in found.disagreement


async def test_only_relays_that_announce_the_path_are_asked(world: PaidWorld) -> None:
    world.announce(ledger=False)
    await world.voucher(100_000)
    assert await code_of(accounts_of(world).ask(world.target.ref)) == "no_relay_available"
    assert (await world.sums())[0] == 0
    # Everything else goes through them as ever.
    assert await world.ask() == WORDS


async def test_a_target_that_announces_none_is_not_asked(world: PaidWorld) -> None:
    peer = world.payer.asker.peers.get(world.target.ref)
    assert peer is not None and peer.verified is not None
    older = msgspec.structs.replace(peer.verified.details, relaydesk_ledger=False)
    peer.verified = replace(peer.verified, details=older)
    assert await code_of(accounts_of(world).ask(world.target.ref)) == "unsupported"


async def test_all_that_waits_is_told_and_a_bad_voucher_holds_up_none(world: PaidWorld) -> None:
    accounts, purse, ref = accounts_of(world), world.payer.purse, world.target.ref
    await purse.add_voucher(VoucherCode(ref, bytes(20)).text)
    await world.voucher(100_000)
    await world.voucher(50_000)
    await accounts.tell(ref)
    assert await purse.waiting_vouchers(ref) == ()
    assert (await world.sums())[0] == 150_000
    assert [each.code for each in world.payer.alerts.view().alerts] == ["voucher_refused"]


async def test_a_node_that_nobody_lists(world: PaidWorld) -> None:
    assert await code_of(accounts_of(world).ask(NodeRef(9, 9))) == "not_found"


@pytest.mark.parametrize("said", [b"{}", b"[]", b'{"relaydesk_ledger":{"balance":-1,"held":0}}'])
async def test_an_answer_that_is_none(world: PaidWorld, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    async def answer(_: bytes) -> bytes:
        return said

    monkeypatch.setattr(world.target.ledger, "answer", answer)
    assert await code_of(accounts_of(world).ask(world.target.ref)) == "operator_inconsistent_response"


async def test_a_refusal(world: PaidWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: bytes) -> bytes:
        raise LedgerRefusal("expired")

    monkeypatch.setattr(world.target.ledger, "answer", refuse)
    with pytest.raises(FaultError, match="bad_request"):
        await accounts_of(world).ask(world.target.ref)
