"""Vouchers at a real target: handed in at once, and with reserves where that was not possible."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.ledger.voucher import VoucherCode
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.asking.view import Stranger
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.engine.relay.exchange.redeemer import Redeemer
from tests.support.exchange_rig import ExchangeRig, text_of
from tests.support.paid_world import WORDS, PaidWorld, paid_world
from tests.support.wire.lies import put


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[PaidWorld]:
    async with paid_world(tmp_path) as made:
        made.announce()
        yield made


def accounts_of(world: PaidWorld) -> Accounts:
    payer = world.payer
    return Accounts(payer.asker, payer.purse, PyrageAge(), payer.clock)


def redeemer_of(world: PaidWorld) -> Redeemer:
    return Redeemer(accounts_of(world), world.payer.asker, world.payer.purse)


async def test_a_voucher_is_redeemed_at_once(world: PaidWorld) -> None:
    redeemer, ledger = redeemer_of(world), world.target.ledger
    await world.voucher(70_000)
    code = await ledger.issue(100_000)
    found = await redeemer.redeem(code)
    # It went before the one that has waited longer.
    assert (found.voucher.state, found.voucher.amount, found.account.balance) == (
        "redeemed",
        100_000,
        100_000,
    )
    assert (found.account.ref, found.account.waiting, found.before) == (world.target.ref, 1, False)
    again = await redeemer.redeem(code)
    assert (again.before, again.voucher) == (True, found.voucher)
    assert (await world.sums())[0] == 100_000


async def test_a_voucher_that_is_refused_at_once_raises_no_alert(world: PaidWorld) -> None:
    redeemer, ref = redeemer_of(world), world.target.ref
    unknown = VoucherCode(ref, bytes(20)).text
    found = await redeemer.redeem(unknown)
    assert (found.voucher.state, found.voucher.reason) == ("refused", "bad_voucher")
    assert world.payer.alerts.view().alerts == ()


async def test_a_voucher_waits_where_its_target_cannot_be_asked(world: PaidWorld) -> None:
    world.announce(ledger=False)
    found = await redeemer_of(world).redeem(await world.target.ledger.issue(100_000))
    assert (found.voucher.state, found.before) == ("waiting", False)
    assert found.why
    world.announce()
    await accounts_of(world).ask(world.target.ref)
    assert (await world.sums())[0] == 100_000


async def test_vouchers_that_can_never_be_redeemed_are_not_kept(world: PaidWorld) -> None:
    redeemer, peers = redeemer_of(world), world.payer.asker.peers
    good = VoucherCode(world.target.ref, bytes(20)).text
    for code, said in (
        (good[:-1] + ("a" if good[-1] != "a" else "b"), "mistyped"),
        (VoucherCode(NodeRef(9, 9), bytes(20)).text, "no directory lists that node"),
    ):
        with pytest.raises(LocalError, match=said):
            await redeemer.redeem(code)
    peers.self_ref = world.target.ref
    with pytest.raises(LocalError, match="this node itself"):
        await redeemer.redeem(good)
    peers.self_ref = None
    listed = world.payer.directory.listed.pop(world.target.ref)
    world.payer.asker.report._strangers = lambda: [Stranger(listed, "blocked", "")]
    with pytest.raises(LocalError, match="does not use: it is blocked"):
        await redeemer.redeem(good)
    assert await world.payer.purse.accounts() == ()
    assert not list(world.payer.folder.glob("**/voucher-*"))


async def test_a_good_voucher_is_not_held_up_by_a_bad_one(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        world.announce()
        purse, ref = world.payer.purse, world.target.ref
        for secret in (bytes(20), b"a" * 20):
            await purse.add_voucher(VoucherCode(ref, secret).text)
        await world.voucher(100_000)
        assert await world.ask() == WORDS
        assert await purse.waiting_vouchers(ref) == ()
        assert (await world.sums())[0] == 100_000
        assert {each.code for each in world.payer.alerts.view().alerts} == {"voucher_refused"}


async def test_vouchers_go_one_by_one_with_reserves_where_no_relay_has_the_path(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        target = rig.targets[0]
        target.lies.details = put(relaydesk_ledger=True)
        notes = [
            {"balance": 0, "held": 0, "refused": "bad_voucher"},
            {"balance": 10**6, "held": 0, "voucher": 9},
        ]
        told = iter(notes)
        target.lies.reserve_response = lambda answer: answer.update(relaydesk_ledger=next(told))
        await rig.probe()
        for secret in (bytes(20), b"a" * 20, b"b" * 20):
            await rig.purse.add_voucher(VoucherCode(rig.ref(target), secret).text)
        assert text_of(await rig.stream()) == target.words.text
        assert [each.path for each in target.seen].count("/v1/zs/reserve") == 2
        assert len(await rig.purse.waiting_vouchers(rig.ref(target))) == 1


async def test_bad_vouchers_alone_end_it_for_want_of_credit(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        await world.payer.purse.add_voucher(VoucherCode(world.target.ref, bytes(20)).text)
        with pytest.raises(FaultError) as caught:
            await world.ask()
        assert caught.value.fault.code == "credit_missing"
