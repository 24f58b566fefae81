from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.engine.clock import SystemRng
from relaydesk.engine.ledger.purse import LATE_MS
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.engine.relay.exchange.settler import GIVE_UP_EVERY_S, LEAST_S, MOST_S, TICK_S, Settler
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


async def test_it_looks_in_time_and_gives_up_what_is_of_yesterday(tmp_path: Path) -> None:
    async with paid_world(tmp_path) as world:
        world.announce(ledger=False)
        await world.voucher(100_000)
        assert await world.ask() == WORDS
        clock, purse = world.payer.clock, world.payer.purse
        assert await waiting(world) == 1
        wall = clock.wall_ms() + LATE_MS + 60_000
        clock.wall_ms = lambda: wall  # type: ignore[method-assign]
        pauses: list[float] = []

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            clock.ahead_s += seconds
            if sum(pauses) > GIVE_UP_EVERY_S + TICK_S:
                raise EnvError("storage_failed", "the end")

        accounts = Accounts(world.payer.asker, purse, PyrageAge(), clock)
        with pytest.raises(EnvError, match="the end"):
            await Settler(accounts, purse, clock, SystemRng(), sleep).run()
        assert set(pauses) == {TICK_S}
        assert await waiting(world) == 0
