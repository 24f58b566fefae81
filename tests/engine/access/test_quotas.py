"""Quotas over restarts, kills and power cuts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.access.quota import DAY_MS, Ask, day_of
from relaydesk.core.errors import EnvError, PeerError
from relaydesk.engine.access import quotas as module
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.tasks import spawn
from relaydesk.store.db import Database
from relaydesk.store.usage import UsageRepo
from relaydesk.store.usage_log import UsageLog

NOON = 20_000 * DAY_MS + DAY_MS // 2
ASK = Ask(prompt=10, limit=20)


class Noon:
    """A clock that stands at noon until it is moved."""

    def __init__(self) -> None:
        self.wall, self.now = NOON, 0.0

    def wall_ms(self) -> int:
        return self.wall

    def mono(self) -> float:
        return self.now


class Rig:
    """Quotas over files; `open` again is a restart without a stop, as after a kill."""

    def __init__(self, directory: Path) -> None:
        self.dir = directory
        self.clock = Noon()
        self.told: list[str] = []
        self.databases: list[Database] = []

    async def open(self, boot: str = "one", limits: KeyLimits | None = None) -> Quotas:
        database = Database(self.dir / "hub.db")
        await database.open()
        self.databases.append(database)
        log = UsageLog(self.dir / "usage.log")
        quotas = Quotas(UsageRepo(database), log, self.clock, boot, self.told.append)
        await quotas.open()
        quotas.limit("k", limits or KeyLimits(tokens_per_day=100_000))
        return quotas


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    yield made
    for database in made.databases:
        await database.close()


async def spend(quotas: Quotas, prompt: int = 10, completion: int = 5) -> None:
    quotas.settle("k", await quotas.admit("k", ASK), prompt, completion)


async def test_a_clean_stop(rig: Rig) -> None:
    quotas = await rig.open()
    await spend(quotas)
    await quotas.close()
    again = await rig.open(boot="two")
    assert again.standing("k").used == 15
    (row,) = await again.history("k", 0)
    assert (row.requests, row.prompt, row.completion) == (1, 10, 5)


async def test_a_kill_loses_nothing_that_was_settled(rig: Rig) -> None:
    quotas = await rig.open()
    await spend(quotas)
    await quotas.history(None, 0)
    for _ in range(3):
        await spend(quotas)
    again = await rig.open()
    assert again.standing("k").used == 60
    third = await rig.open()
    assert third.standing("k").used == 60
    assert [row.requests for row in await third.history("k", 0)] == [4]


async def test_a_kill_between_the_database_and_the_log(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UsageLog, "clear", lambda _: None)
    quotas = await rig.open()
    await spend(quotas)
    await quotas.history(None, 0)
    assert (await rig.open()).standing("k").used == 15


async def test_a_power_cut_is_never_in_the_keys_favour(rig: Rig, tmp_path: Path) -> None:
    """What is on the disk is what the database has synced: the log may be empty."""
    quotas = await rig.open()
    for _ in range(3):
        await spend(quotas)
    (tmp_path / "usage.log").write_bytes(b"")
    again = await rig.open(boot="two")
    assert 45 <= again.standing("k").used <= 45 + 20_000
    # Said once: another start finds the same.
    assert (await rig.open(boot="three")).standing("k").used == again.standing("k").used


async def test_ahead_holds_however_fast_the_key_goes(rig: Rig, tmp_path: Path) -> None:
    quotas = await rig.open(limits=KeyLimits(tokens_per_day=60_000))
    for number in range(60):
        await spend(quotas, 500, 400)
        (tmp_path / "usage.log").write_bytes(b"")
        if number % 20 == 0:
            cut = tmp_path / f"cut{number}"
            cut.mkdir()
            for file in tmp_path.glob("hub.db*"):
                shutil.copy(file, cut)
            other = Rig(cut)
            found = (await other.open(boot="two")).standing("k").used
            await other.databases[0].close()
            assert (number + 1) * 900 <= found <= 60_000


async def test_only_what_leads_further_waits_for_the_disk(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = await rig.open()
    writes = 0
    add = UsageRepo.add

    async def counted(*args: object) -> None:
        nonlocal writes
        writes += 1
        await add(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(UsageRepo, "add", counted)
    await asyncio.gather(*(spend(quotas) for _ in range(50)))
    assert writes == 1
    quotas.limit("free", KeyLimits())
    quotas.settle("free", await quotas.admit("free", ASK), 1, 1)
    assert writes == 1


async def test_a_full_disk_refuses_what_leads_further_and_loses_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = await rig.open()
    await spend(quotas)
    add = UsageRepo.add

    async def full(*_: object) -> None:
        raise EnvError("storage_failed", "no space left on the disk")

    monkeypatch.setattr(UsageRepo, "add", full)
    monkeypatch.setattr(module, "FLUSH_S", 0.02)
    with pytest.raises(EnvError):
        await quotas.admit("k", Ask(prompt=40_000, limit=1000))
    assert quotas.standing("k").running == 0
    runs = spawn(quotas.run(), name="run")
    await asyncio.sleep(0.2)
    assert rig.told == ["no space left on the disk"]
    monkeypatch.setattr(UsageRepo, "add", add)
    await asyncio.sleep(0.2)
    assert rig.told[-1] == ""
    runs.cancel()
    assert (await rig.open()).standing("k").used == 15


async def test_a_caller_that_leaves_while_waiting_leaves_no_slot_and_no_double_count(rig: Rig) -> None:
    quotas = await rig.open()
    for _ in range(20):
        waiting = spawn(quotas.admit("k", Ask(prompt=1, limit=1)), name="admit")
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        quotas._ahead.clear()
        quotas._durable.clear()
    assert quotas.standing("k").running == 0
    await spend(quotas)
    assert [row.requests for row in await quotas.history("k", 0)] == [1]


async def test_refusals_come_before_any_waiting(rig: Rig) -> None:
    quotas = await rig.open(limits=KeyLimits(max_concurrency=1))
    grant = await quotas.admit("k", ASK)
    with pytest.raises(PeerError):
        await quotas.admit("k", ASK)
    quotas.settle("k", grant, 0, 0)
    await quotas.admit("k", ASK)
    assert await quotas.history("k", 0) == ()


async def test_the_exact_count(rig: Rig) -> None:
    quotas = await rig.open(limits=KeyLimits(tokens_per_day=100))
    grant = await quotas.admit("k", Ask(prompt=500, limit=500))
    assert quotas.recount("k", grant, 40) == 60
    quotas.settle("k", grant, 40, 60)
    assert quotas.standing("k").tokens_left == 0
    rig.clock.wall += DAY_MS
    assert quotas.standing("k").tokens_left == 100
    assert day_of(rig.clock.wall) == day_of(NOON) + 1


async def test_a_key_that_is_gone(rig: Rig) -> None:
    quotas = await rig.open()
    grant = await quotas.admit("k", ASK)
    quotas.forget("k")
    # What it had begun to send is admitted no more, least of all without its limits.
    with pytest.raises(PeerError) as caught:
        await quotas.admit("k", ASK)
    assert caught.value.fault.code == "invalid_api_key"
    quotas.settle("k", grant, 10, 5)
    assert quotas.standing("k").used == 15
    quotas.forget("k")
    assert [row.tokens for row in await quotas.history("k", 0)] == [15]


async def test_whoever_watches_is_told_once_a_second_while_something_moves(rig: Rig) -> None:
    moved: list[int] = []
    quotas = await rig.open()
    quotas._moved = lambda: moved.append(quotas.standing("k").used)
    quotas._tell()
    assert moved == []
    grant = await quotas.admit("k", ASK)
    quotas._tell()
    quotas._tell()
    assert moved == [0]
    quotas.settle("k", grant, 10, 5)
    quotas._tell()
    assert moved == [0, 15]
    # The last 60 seconds go by, and after them there is nothing to tell any more.
    rig.clock.now += 61.0
    quotas._tell()
    quotas._tell()
    assert len(moved) == 3
    quotas._tell()
    assert len(moved) <= 4
    assert quotas._active == set()


async def test_nothing_is_relied_on_before_it_is_on_the_disk(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = await rig.open()
    go = asyncio.Event()
    add = UsageRepo.add

    async def slow(*args: object) -> None:
        await go.wait()
        await add(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(UsageRepo, "add", slow)
    first, second = (spawn(quotas.admit("k", ASK), name="admit") for _ in range(2))
    await asyncio.sleep(0.05)
    assert not first.done()
    assert not second.done()
    go.set()
    await asyncio.gather(first, second)
