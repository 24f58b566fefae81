from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from relaydesk.engine.tls.acme.files import AcmeFiles, Kept
from relaydesk.engine.tls.acme.keeper import AcmeKeeper
from relaydesk.engine.tls.acme.plan import AcmePlan
from tests.engine.tls.acme.test_files import issued
from tests.support.acme_server import AcmeServer, problem
from tests.support.clock import FakeClock, FakeRng
from tests.support.pebble import Pebble

Plans = Callable[..., AcmePlan]


class Desk:
    """Makes keepers in one state directory, and notes what they say."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.clock = FakeClock(wall_ms=round(time.time() * 1000))
        self.served: list[Kept] = []
        self.said: list[str] = []

    def keeper(self, plan: AcmePlan) -> AcmeKeeper:
        return AcmeKeeper(
            plan, self.state, self.clock, FakeRng(), {}, self.served.append, self.said.append, look_every=0.02
        )  # fmt: skip

    @contextlib.asynccontextmanager
    async def running(self, plan: AcmePlan) -> AsyncIterator[AcmeKeeper]:
        keeper = self.keeper(plan)
        keeper.load()
        task = asyncio.ensure_future(keeper.run())
        try:
            yield keeper
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def keep(self, plan: AcmePlan, **certificate: Any) -> Kept:
        """Put a certificate there, as an earlier run would have."""
        files = AcmeFiles(self.state, plan, self.clock)
        files.prepare()
        return files.save(issued(*plan.names, **certificate))


async def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.01)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "state")


async def test_a_first_certificate_is_got_and_a_restart_asks_for_none(
    pebble: Pebble, plan_for: Plans, desk: Desk
) -> None:
    plan = plan_for(pebble, "first.lab.test")
    before = pebble.issued
    async with desk.running(plan) as keeper:
        assert "until it is there the hub serves one of its own CA" in desk.said[0]
        assert keeper.shown.startswith("none yet for first.lab.test")
        await until(lambda: desk.served)
        assert desk.said[-1] == ""
        assert keeper.shown.startswith("first.lab.test from 127.0.0.1 until ")
    async with desk.running(plan):
        await until(lambda: len(desk.served) == 2)
        await asyncio.sleep(0.1)
    assert pebble.issued == before + 1
    assert desk.served[0].life == desk.served[1].life
    assert desk.said[-1] == ""


@pytest.mark.long
async def test_one_with_a_third_of_its_life_left_is_renewed(
    pebble: Pebble, plan_for: Plans, desk: Desk
) -> None:
    plan = plan_for(pebble, "due.lab.test")
    old = desk.keep(plan, start=-61, days=90)
    async with desk.running(plan):
        assert desk.said == [""], "the old one is good for a while"
        await until(lambda: len(desk.served) == 2)
    assert desk.served[0].life == old.life
    assert desk.served[1].life.start > old.life.start
    assert set(desk.said) == {""}


@pytest.mark.long
async def test_it_is_renewed_again_and_again_before_it_ends(
    plan_for: Plans, desk: Desk, tmp_path: Path
) -> None:
    desk.clock = _RealTime()  # type: ignore[assignment]  # the server's certificates live in real time
    with Pebble(tmp_path, validity_s=6, reuse=True) as short:
        async with desk.running(plan_for(short)):
            await until(lambda: len(desk.served) >= 2)
        first, second = desk.served[:2]
        assert second.life.start < first.life.end
        assert short.issued >= 2
    assert set(desk.said[1:]) == {""}


@pytest.mark.long
async def test_the_server_forgot_the_account(plan_for: Plans, desk: Desk, tmp_path: Path) -> None:
    with Pebble(tmp_path) as forgetful:
        plan = plan_for(forgetful)
        async with desk.running(plan):
            await until(lambda: desk.served)
        forgetful.restart()
        async with desk.running(dataclasses.replace(plan, names=("other.lab.test",))):
            await until(lambda: "other.lab.test" in desk.served[-1].names)


async def test_a_failure_is_told_and_tried_again_later_and_later(
    server: AcmeServer, plan_for: Plans, desk: Desk
) -> None:
    server.reply["/dir"] = problem("serverInternal", 500)
    async with desk.running(plan_for(server)):
        await until(lambda: "an error of its own" in desk.said[-1])
        assert "no certificate for hub.lab.test yet (next try at 20" in desk.said[-1]
        for expected in (60, 120, 240):
            asked = len(server.asked)
            desk.clock.advance(expected / 2 - 1)
            await asyncio.sleep(0.1)
            assert len(server.asked) == asked, "half of the pause is the least"
            desk.clock.advance(expected / 2 + 1)
            await until(lambda: len(server.asked) > asked)  # noqa: B023
            await until(lambda: len(desk.said) > asked + 1)  # noqa: B023


async def test_what_the_server_asked_for_outlives_a_restart_and_other_settings(
    server: AcmeServer, plan_for: Plans, desk: Desk
) -> None:
    server.reply["/newAccount"] = problem("rateLimited", 429, Retry_After="7200")
    plan = plan_for(server)
    async with desk.running(plan):
        await until(lambda: "too often" in desk.said[-1])
    del server.asked[:]
    async with desk.running(dataclasses.replace(plan, email="me@lab.test")):
        assert "; asked for at 20" in desk.said[-1]
        desk.clock.advance(7100)
        await asyncio.sleep(0.1)
        assert server.asked == []
        desk.clock.advance(101)
        await until(lambda: server.asked)


async def test_a_restart_waits_a_little_and_changed_settings_do_not(
    server: AcmeServer, plan_for: Plans, desk: Desk
) -> None:
    plan = plan_for(server)
    with socket.create_server(("127.0.0.1", plan.listen.port)):
        async with desk.running(plan):
            await until(lambda: "in use by another program" in desk.said[-1])
    async with desk.running(plan):
        await asyncio.sleep(0.1)
    assert server.asked == []
    async with desk.running(plan_for(server)):  # another port
        await until(lambda: server.asked)


async def test_a_renewal_that_fails_leaves_the_old_one_in_service(
    server: AcmeServer, plan_for: Plans, desk: Desk
) -> None:
    plan = plan_for(server)
    desk.keep(plan, days=90)
    async with desk.running(plan):
        assert desk.said == [""]
        desk.clock.advance(59 * 86400)
        await asyncio.sleep(0.1)
        assert server.asked == []
        desk.clock.advance(1.5 * 86400)
        await until(lambda: "could not be renewed" in desk.said[-1])
        assert "ends on 20" in desk.said[-1]
        # The server's clock did not jump with ours, which is the first thing that is said.
        assert "clock" in desk.said[-1]
        assert len(desk.served) == 1


async def test_other_names_are_asked_for_while_the_former_are_served(
    server: AcmeServer, plan_for: Plans, desk: Desk
) -> None:
    desk.keep(plan_for(server, "one.lab.test"))
    async with desk.running(plan_for(server, "one.lab.test", "two.lab.test")):
        assert desk.served[0].names == {"one.lab.test"}
        assert "no certificate for all of one.lab.test, two.lab.test yet: the former" in desk.said[0]
        await until(lambda: "POST /newAccount" in server.asked)


async def test_fewer_names_need_no_new_one(server: AcmeServer, plan_for: Plans, desk: Desk) -> None:
    plan = plan_for(server, "one.lab.test", "two.lab.test")
    desk.keep(plan)
    async with desk.running(dataclasses.replace(plan, names=("one.lab.test",))):
        await asyncio.sleep(0.1)
    assert server.asked == []
    assert set(desk.said) == {""}


async def test_a_clock_set_back_is_told_and_nothing_is_asked_for(
    server: AcmeServer, plan_for: Plans, desk: Desk
) -> None:
    plan = plan_for(server)
    desk.keep(plan)
    right = desk.clock.wall_ms()
    desk.clock.set_wall_ms(right - 40 * 86_400_000)
    async with desk.running(plan):
        await until(lambda: desk.said[-1].endswith(": set the clock"))
        desk.clock.set_wall_ms(right)
        await until(lambda: desk.said[-1] == "")
    assert server.asked == []


async def test_a_disk_that_takes_nothing_is_told(server: AcmeServer, plan_for: Plans, desk: Desk) -> None:
    plan = plan_for(server)
    keeper = desk.keeper(plan)
    keeper.load()
    home = next((desk.state / "tls" / "acme").iterdir())
    home.rmdir()
    home.write_text("in the way")
    task = asyncio.ensure_future(keeper.run())
    await until(lambda: "is not a directory" in desk.said[-1] or "cannot" in desk.said[-1])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.asked == []


class _RealTime:
    def wall_ms(self) -> int:
        return round(time.time() * 1000)

    def mono(self) -> float:
        return time.monotonic()
