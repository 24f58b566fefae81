"""The payer's book against a real ledger, with the JSON between them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.ledger.ask import Answer
from relaydesk.core.ledger.extensions import LedgerNote, Settled, read_note, read_open, read_settlements
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.terms import Terms
from relaydesk.core.ledger.voucher import parse_code
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.ledger.ledger import Ledger
from relaydesk.engine.ledger.purse import Extras, Purse
from relaydesk.engine.ledger.refused_alarm import STANDS_MS
from relaydesk.store.db import Database
from relaydesk.store.secrets import FileSecrets
from tests.support.clock import FakeRng
from tests.support.ledger_rig import ANN, NODE, REF, VALUES, LedgerRig, ticket_id


class Payer:
    """A purse over real files; `start` again is a restart."""

    def __init__(self, directory: Path, rig: LedgerRig) -> None:
        self.rig = rig
        self.secrets = FileSecrets(directory / "payer")
        self.database = Database(directory / "payer.db")
        self.alerts = AlertBoard(rig.clock, rig.bus)

    async def start(self) -> Purse:
        await self.database.close()
        await self.database.open()
        self.secrets.prepare()
        purse = Purse(
            self.database, self.secrets, self.rig.clock, FakeRng("payer"), self.rig.bus, self.alerts
        )
        await purse.start()
        return purse


@pytest.fixture
async def payer(rig: LedgerRig, tmp_path: Path) -> AsyncIterator[Payer]:
    (tmp_path / "payer").mkdir(mode=0o700)
    made = Payer(tmp_path, rig)
    yield made
    await made.database.close()


async def reserve(ledger: Ledger, purse: Purse) -> LedgerNote:
    """What a reserve carries there and back, as JSON."""
    sent = await purse.extras(REF)
    fields = json.loads(msgspec.json.encode(sent.fields))
    items = read_settlements(msgspec.json.encode(fields.get("relaydesk_settle", [])))
    address = (await purse.key(REF.operator)).address
    note = await ledger.note(address, fields.get("relaydesk_voucher", ""), items)
    note = read_note(msgspec.json.encode(note))
    await purse.told(REF, note, sent)
    return note


async def opened(ledger: Ledger, purse: Purse, rig: LedgerRig, number: int, price: int = 100) -> str:
    address = (await purse.key(REF.operator)).address
    terms = Terms(ticket_id(number), address, "smollm2", price, rig.clock.wall_ms() // 1000 + 300)
    ticket = await purse.open_(REF, terms.ticket_id, terms.model, price, terms.expires_at)
    request = read_open(msgspec.json.encode(ticket.extension))
    await ledger.open_(terms, request, ticket.tx_id)
    return ticket.tx_id


async def test_a_whole_exchange_and_its_statement(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    code = await ledger.issue(1000)
    await purse.add_voucher(code)
    (credit,) = purse.view()
    assert (credit.balance, credit.waiting) == (0, 1)
    assert await reserve(ledger, purse) == LedgerNote(1000, 0, 1000)
    assert not list(payer.secrets.directory.glob("voucher-*"))
    tx_id = await opened(ledger, purse, rig, 1)
    await ledger.receipt(tx_id, VALUES)
    await purse.claim(tx_id, VALUES)
    # Told again until it is answered, over a restart of the payer.
    assert await purse.extras(REF) == (again := await (await payer.start()).extras(REF))
    assert len(again.settle) == 1
    purse = await payer.start()
    assert (await reserve(ledger, purse)).settled == (Settled(tx_id, "settled"),)
    assert await purse.extras(REF) == Extras()
    (credit,) = purse.view()
    assert (credit.balance, credit.held, credit.open, credit.waiting) == (960, 0, 0, 0)
    statement = await ledger.statement(credit.payer)
    assert await purse.disagreement(REF, NODE.address, statement) == ""
    other = await purse.disagreement(REF, credit.payer, statement)
    assert "not signed by the key" in other
    assert "another account" in await purse.disagreement(NodeRef(1, 1), NODE.address, statement)


async def test_between_two_reserves(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    await purse.add_voucher(await ledger.issue(500))
    sent = await purse.extras(REF)
    answer = msgspec.json.decode(await ledger.answer(await purse.ask(REF, "statement", sent)), type=Answer)
    await purse.told(REF, answer.relaydesk_ledger, sent)
    assert answer.relaydesk_ledger == LedgerNote(500, 0, 500)
    assert answer.statement is not None
    assert [row.kind for row in answer.statement.rows] == ["redeem"]
    assert await purse.disagreement(REF, NODE.address, answer.statement) == ""
    body = await purse.ask(REF, "balance", Extras(), 7)
    assert msgspec.json.decode(await ledger.answer(body), type=Answer).statement is None


async def test_a_target_that_books_other_amounts_is_named(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    await purse.add_voucher(await ledger.issue(500))
    await reserve(ledger, purse)
    tx_id = await opened(ledger, purse, rig, 1)
    await purse.claim(tx_id, msgspec.structs.replace(VALUES, amount=10))
    await ledger.receipt(tx_id, VALUES)
    rig.clock.advance(900)
    await ledger.due()
    address = (await purse.key(REF.operator)).address
    told = await purse.disagreement(REF, NODE.address, await ledger.statement(address))
    assert told == f"row 5: {tx_id} ended at 40, and we agreed to 10"


async def test_a_protest(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    await purse.add_voucher(await ledger.issue(500))
    await reserve(ledger, purse)
    tx_id = await opened(ledger, purse, rig, 1)
    await ledger.receipt(tx_id, VALUES)
    await purse.protest(tx_id, "ef" * 32)
    with pytest.raises(LedgerRefusal, match="claim_differs"):
        await purse.claim(tx_id, VALUES)
    assert (await reserve(ledger, purse)).settled == (Settled(tx_id, "frozen"),)
    with pytest.raises(LedgerRefusal, match="unknown_ticket"):
        await purse.protest("A" * 52, "ef" * 32)


async def test_keys_are_one_for_each_operator_and_stay(payer: Payer) -> None:
    purse = await payer.start()
    ours = {operator: (await purse.key(operator)).address for operator in (1, 2, 2**64 - 1)}
    assert len(set(ours.values())) == 3
    again = await payer.start()
    assert {operator: (await again.key(operator)).address for operator in ours} == ours
    path = payer.secrets.directory / "payer-1"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("broken")
    # Credit is gone where a new key takes an unreadable one's place.
    with pytest.raises(EnvError):
        await (await payer.start()).key(1)
    assert path.read_text() == "broken"


async def test_a_refused_voucher_may_be_handed_in_again(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    code = await ledger.issue(500)
    with pytest.raises(LocalError):
        await purse.add_voucher("rdv1.x")
    await purse.add_voucher(code)
    sent = await purse.extras(REF)
    await purse.told(REF, LedgerNote(0, 0, None, "account_full"), sent)
    assert (await purse.extras(REF)).voucher == ""
    await purse.add_voucher(code)
    assert (await reserve(ledger, purse)).voucher == 500
    await purse.add_voucher(code)
    assert (await purse.extras(REF)).voucher == ""


async def test_a_refused_voucher_is_an_alert_until_it_is_old_or_handed_in_again(
    rig: LedgerRig, payer: Payer
) -> None:
    ledger, purse = await rig.start(), await payer.start()
    code = await ledger.issue(500)
    await ledger.redeem(ANN.address, code)
    await purse.add_voucher(code)
    await reserve(ledger, purse)
    (alert,) = payer.alerts.view().alerts
    assert alert.code == "voucher_refused"
    assert "the voucher was redeemed for another account" in alert.message
    (shown,) = purse.refused()
    assert (shown.id, shown.why) == (alert.subject, "the voucher was redeemed for another account")
    assert (await payer.start()).refused() == (shown,)
    await purse.add_voucher(code)
    assert payer.alerts.view().alerts == ()
    assert purse.refused() == ()
    await reserve(ledger, purse)
    rig.clock.advance(STANDS_MS / 1000)
    await purse.give_up()
    assert payer.alerts.view().alerts == ()
    assert len(purse.refused()) == 1
    # Whoever waits for the answer is told by nothing else.
    await purse.add_voucher(code)
    sent = await purse.extras(REF)
    await purse.told(REF, LedgerNote(0, 0, None, "unheard_of"), sent, quiet=parse_code(code).id)
    assert payer.alerts.view().alerts == ()
    assert purse.refused()[0].why == "it gave no reason that is known here"


async def test_a_code_that_is_lost_holds_up_none_behind_it(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    for amount in (1, 500):
        await purse.add_voucher(await ledger.issue(amount))
        rig.clock.advance(1)
    lost, _ = await purse.waiting_vouchers(REF)
    payer.secrets.remove(f"voucher-{lost[:40]}")
    assert (await reserve(ledger, purse)).voucher == 500
    (shown,) = purse.refused()
    assert "not among this node's secrets" in shown.why
    assert [each.code for each in payer.alerts.view().alerts] == ["voucher_refused"]


async def test_what_was_redeemed_is_not_kept_again(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    first, second = await ledger.issue(500), await ledger.issue(70)
    await purse.add_voucher(first)
    await purse.add_voucher(second)
    # The one that somebody waits for goes first.
    assert (await purse.extras(REF, parse_code(second).id)).voucher == second
    assert {(await reserve(ledger, purse)).voucher for _ in range(2)} == {500, 70}
    await purse.add_voucher(first)
    assert not list(payer.secrets.directory.glob("voucher-*"))
    assert await purse.waiting_vouchers(REF) == ()


async def test_a_target_tells_only_of_its_own_tickets(rig: LedgerRig, payer: Payer) -> None:
    ledger, purse = await rig.start(), await payer.start()
    await purse.add_voucher(await ledger.issue(500))
    await reserve(ledger, purse)
    tx_id = await opened(ledger, purse, rig, 1)
    await purse.claim(tx_id, VALUES)
    await purse.told(NodeRef(1, 1), LedgerNote(1, 1, settled=(Settled(tx_id, "settled"),)), Extras())
    assert len((await purse.extras(REF)).settle) == 1
    rig.clock.advance(2 * 86_400)
    assert (await (await payer.start()).extras(REF)).settle == ()
