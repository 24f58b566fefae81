"""Credit over restarts, kills and power cuts, in the same books as tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.access.quota import DAY_MS, Ask, day_of
from relaydesk.core.errors import EnvError, PeerError
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.tasks import spawn
from relaydesk.store.db import Database
from relaydesk.store.usage import UsageRepo
from relaydesk.store.usage_log import UsageLog

NOON = 20_000 * DAY_MS + DAY_MS // 2
TODAY = day_of(NOON)
LIMITS = KeyLimits(credit_per_day=10_000)


class Noon:
    """A clock that stands at noon until it is moved."""

    wall = NOON

    def wall_ms(self) -> int:
        return self.wall

    def mono(self) -> float:
        return 0.0


class Rig:
    """Quotas over files; `open` again is a restart without a stop, as after a kill."""

    def __init__(self, directory: Path) -> None:
        self.dir = directory
        self.clock = Noon()
        self.told: list[str] = []
        self.databases: list[Database] = []

    async def open(self, boot: str = "one", limits: KeyLimits = LIMITS) -> Quotas:
        database = Database(self.dir / "hub.db")
        await database.open()
        self.databases.append(database)
        log = UsageLog(self.dir / "usage.log")
        quotas = Quotas(UsageRepo(database), log, self.clock, boot, self.told.append)
        await quotas.open()
        quotas.limit("k", limits)
        return quotas

    async def close(self) -> None:
        for database in self.databases:
            await database.close()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    yield made
    await made.close()


def spent(quotas: Quotas) -> tuple[int, int]:
    standing = quotas.credits.standing("k")
    return standing.spent, standing.held


async def test_a_clean_stop(rig: Rig) -> None:
    quotas = await rig.open()
    quotas.credits.settle("k", await quotas.credits.hold("k", 900), 250)
    await quotas.close()
    again = await rig.open(boot="two")
    assert spent(again) == (250, 0)
    (row,) = await again.history("k", 0)
    assert (row.requests, row.tokens, row.credit) == (0, 0, 250)


async def test_a_kill_in_the_middle_leaves_all_of_it_spent(rig: Rig) -> None:
    quotas = await rig.open()
    quotas.credits.settle("k", await quotas.credits.hold("k", 900), 250)
    await quotas.credits.hold("k", 4000)
    assert spent(quotas) == (250, 4000)
    again = await rig.open()
    assert spent(again) == (4250, 0)
    with pytest.raises(PeerError) as caught:
        await again.credits.hold("k", 5751)
    assert caught.value.fault.code == "credit_per_day_exceeded"
    await again.credits.hold("k", 5750)


async def test_a_power_cut_forgets_nothing_that_may_be_paid(rig: Rig) -> None:
    """What is on the disk is what the database has synced: the log may be empty."""
    quotas = await rig.open()
    await quotas.credits.hold("k", 4000)
    (rig.dir / "usage.log").write_bytes(b"")
    assert spent(await rig.open(boot="two")) == (4000, 0)


async def test_what_comes_back_may_be_forgotten_but_is_never_counted_twice(rig: Rig) -> None:
    quotas = await rig.open()
    quotas.credits.settle("k", await quotas.credits.hold("k", 4000), 100)
    log = (rig.dir / "usage.log").read_bytes()
    assert spent(await rig.open()) == (100, 0)
    # The same log once more, its entries taken over already.
    (rig.dir / "usage.log").write_bytes(log)
    assert spent(await rig.open()) == (100, 0)


async def test_what_is_free_waits_for_no_disk(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = await rig.open()

    async def refuse(*_: object) -> None:
        raise EnvError("storage_failed", "the disk is full")

    monkeypatch.setattr(UsageRepo, "add", refuse)
    quotas.credits.settle("k", await quotas.credits.hold("k", 0), 0)
    with pytest.raises(EnvError):
        await quotas.credits.hold("k", 1)
    assert spent(quotas) == (0, 0)


async def test_a_burst_never_passes_the_limit(rig: Rig) -> None:
    quotas = await rig.open()
    held = await asyncio.gather(*(quotas.credits.hold("k", 3000) for _ in range(20)), return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in held) == 3
    codes = {each.fault.code for each in held if isinstance(each, PeerError)}
    assert codes == {"concurrency_exceeded"}


async def test_who_leaves_while_the_disk_is_waited_for_has_spent_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = await rig.open()
    add, gate = UsageRepo.add, asyncio.Event()

    async def slow(*args: Any) -> None:
        await gate.wait()
        await add(*args)

    monkeypatch.setattr(UsageRepo, "add", slow)
    waiting = spawn(quotas.credits.hold("k", 4000), name="hold")
    await asyncio.sleep(0.01)
    waiting.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert spent(quotas) == (0, 0)
    assert [row.credit for row in await quotas.history("k", 0)] == [0]
    assert spent(await rig.open()) == (0, 0)


async def test_it_counts_for_the_day_on_which_it_was_set_aside(rig: Rig) -> None:
    quotas = await rig.open()
    late = await quotas.credits.hold("k", 6000)
    rig.clock.wall += DAY_MS
    quotas.credits.settle("k", late, 5000)
    assert spent(quotas) == (0, 0)
    rig.clock.wall -= DAY_MS
    assert spent(quotas) == (5000, 0)
    assert {row.day: row.credit for row in await quotas.history("k", 0)} == {TODAY: 5000}


async def test_tokens_and_credit_are_books_apart(rig: Rig) -> None:
    quotas = await rig.open(limits=KeyLimits(tokens_per_day=100, credit_per_day=50))
    grant = await quotas.admit("k", Ask(prompt=10, limit=20))
    quotas.credits.settle("k", await quotas.credits.hold("k", 50), 40)
    quotas.settle("k", grant, 8, 4)
    again = await rig.open(limits=KeyLimits(tokens_per_day=100, credit_per_day=50))
    assert (again.standing("k").used, spent(again)) == (12, (40, 0))
    (row,) = await again.history("k", 0)
    assert (row.requests, row.prompt, row.completion, row.credit) == (1, 8, 4, 40)


async def test_it_is_told_where_a_keys_credit_moves(tmp_path: Path, rig: Rig) -> None:
    quotas = await rig.open()
    moves: list[None] = []
    quotas._moved = lambda: moves.append(None)
    hold = await quotas.credits.hold("k", 10)
    quotas._tell()
    quotas.credits.settle("k", hold, 3)
    quotas._tell()
    assert len(moves) == 2


STEP = st.tuples(st.sampled_from(("open", "end", "kill", "cut", "stop")), st.integers(0, 6000))


@given(st.lists(STEP, max_size=12))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_leaves_no_less_spent_than_was_paid(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    async def play() -> None:
        rig = Rig(tmp_path_factory.mktemp("credit"))
        quotas = await rig.open()
        running: list[Any] = []
        paid = lost = 0
        try:
            for number, (step, amount) in enumerate(steps):
                match step:
                    case "open":
                        try:
                            running.append(await quotas.credits.hold("k", amount))
                        except PeerError:
                            assert sum(spent(quotas)) + amount > 10_000
                    case "end" if running:
                        hold = running.pop()
                        real = min(amount, hold.amount)
                        quotas.credits.settle("k", hold, real)
                        paid += real
                    case "kill" | "cut" | "stop":
                        if step == "stop":
                            await quotas.close()
                        elif step == "cut":
                            (rig.dir / "usage.log").write_bytes(b"")
                        # A ticket that was open may have been taken in full.
                        lost += sum(each.amount for each in running)
                        running = []
                        quotas = await rig.open(boot=f"boot {number}")
                total = sum(spent(quotas))
                assert paid + lost <= total <= 10_000
                if not any(each == "cut" for each, _ in steps):
                    assert spent(quotas)[0] == paid + lost
        finally:
            await rig.close()

    asyncio.run(play())
