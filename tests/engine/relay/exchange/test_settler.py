from __future__ import annotations

from pathlib import Path

from relaydesk.engine.clock import SystemRng
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.engine.relay.exchange.settler import LEAST_S, MOST_S, Settler
from tests.support.paid_world import WORDS, PaidWorld, paid_world


def settler_of(world: PaidWorld) -> Settler:
    payer = world.payer
    accounts = Accounts(payer.asker, payer.purse, PyrageAge(), payer.clock)
    return Settler(accounts, payer.purse, payer.clock, SystemRng())


async def waiting(world: PaidWorld) -> int:
    return sum(each.waiting for each in await world.payer.purse.accounts())


async def test_what_no_reserve_takes_along_is_told_in_its_time(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        world.announce()
        await world.voucher(100_000)
        assert await world.ask() == WORDS
        settler = settler_of(world)
        await settler.look()
        world.payer.clock.ahead_s += LEAST_S - 1
        await settler.look()
        assert await waiting(world) == 1
        world.payer.clock.ahead_s += MOST_S
        await settler.look()
        assert await waiting(world) == 0
        assert (await world.sums())[3] == world.payer.paid[0].amount


async def test_who_cannot_be_told_now_is_told_later(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        await world.voucher(100_000)
        settler = settler_of(world)
        await settler.look()
        world.payer.clock.ahead_s += MOST_S
        await settler.look()
        assert await waiting(world) == 1
        world.announce()
        await settler.look()
        assert await waiting(world) == 1, "not at once"
        world.payer.clock.ahead_s += MOST_S
        await settler.look()
        assert await waiting(world) == 0
