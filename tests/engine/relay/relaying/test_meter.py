from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.engine.relay.relaying.meter import RelayMeter, month_of
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.store.db import Database
from relaydesk.store.relay_meter import RelayMeterRepo
from tests.support.clock import FakeClock

# 2026-01-31T23:59:59Z
LAST_OF_JANUARY = 1_769_903_999_000


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(tmp_path / "relaydesk.db")
    await made.open()
    yield made
    await made.close()


def test_months_are_those_of_utc() -> None:
    assert month_of(LAST_OF_JANUARY) == 2026 * 12
    assert month_of(LAST_OF_JANUARY + 1000) == 2026 * 12 + 1
    assert month_of(LAST_OF_JANUARY + 1000 - 32 * 86_400_000) == 2025 * 12 + 11


async def test_what_was_carried_outlives_the_process_and_ends_with_the_month(database: Database) -> None:
    clock = FakeClock(LAST_OF_JANUARY)
    meter = RelayMeter(clock, RelayMeterRepo(database))
    await meter.open()
    meter.add(5)
    await meter.save()
    meter.add(6)
    await meter.save()
    await meter.save()
    again = RelayMeter(clock, RelayMeterRepo(database))
    await again.open()
    assert again.this_month == meter.this_month == 11
    clock.advance(1)
    assert again.this_month == 0
    again.add(3)
    # A clock that is set back finds what that month had used.
    clock.set_wall_ms(LAST_OF_JANUARY)
    assert again.this_month == 11


async def test_what_cannot_be_saved_waits(tmp_path: Path) -> None:
    database = Database(tmp_path / "relaydesk.db")
    meter = RelayMeter(FakeClock(), RelayMeterRepo(database))
    meter.add(9)
    with pytest.raises(EnvError):
        await meter.save()
    await database.open()
    await meter.save()
    assert list((await RelayMeterRepo(database).list()).values()) == [9]
    await database.close()


async def test_the_last_save_is_at_the_end(database: Database) -> None:
    meter = RelayMeter(FakeClock(), RelayMeterRepo(database))
    task = spawn(meter.run(), name="meter")
    await asyncio.sleep(0)
    meter.add(4)
    await cancel_and_wait(task)
    assert list((await RelayMeterRepo(database).list()).values()) == [4]
