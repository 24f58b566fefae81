from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.engine import supervisor as module
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.supervisor import Supervisor
from tests.support.clock import FakeClock


class Work:
    """A service whose runs are given one by one; the last repeats."""

    def __init__(self, *runs: Callable[[], Awaitable[None]], name: str = "work") -> None:
        self.name = name
        self.runs = list(runs)
        self.started = 0
        self.ended = 0

    async def run(self) -> None:
        self.started += 1
        step = self.runs.pop(0) if len(self.runs) > 1 else self.runs[0]
        try:
            await step()
        finally:
            self.ended += 1


async def forever() -> None:
    await asyncio.Event().wait()


async def done() -> None:
    return


async def boom() -> None:
    raise RuntimeError("boom")


async def full() -> None:
    raise EnvError("storage_failed", "the disk is full", "free some")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.04)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def alerts(clock: FakeClock) -> AlertBoard:
    return AlertBoard(clock, Bus())


@pytest.fixture
def supervisor(clock: FakeClock, alerts: AlertBoard) -> Supervisor:
    return Supervisor(clock, alerts)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(3):
        while not condition():
            await asyncio.sleep(0.002)


async def _stopped(supervisor: Supervisor, running: asyncio.Task[None]) -> None:
    supervisor.stop()
    async with asyncio.timeout(3):
        await running


async def test_stop_ends_every_service_and_waits_for_it(supervisor: Supervisor) -> None:
    async def slow_to_leave() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0.02)

    first, second = Work(forever), Work(slow_to_leave)
    supervisor.add(first)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: first.started == 1)
    supervisor.add(second)
    await _until(lambda: second.started == 1)
    await _stopped(supervisor, running)
    assert (first.ended, second.ended) == (1, 1)


async def test_a_failed_service_starts_again_with_an_alert(
    supervisor: Supervisor, alerts: AlertBoard
) -> None:
    work, other = Work(boom, full, forever), Work(forever)
    supervisor.add(work)
    supervisor.add(other)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: work.started == 3)
    (alert,) = alerts.view().alerts
    assert (alert.code, alert.subject) == ("service_failed", "work")
    assert alert.message == "work failed: the disk is full: free some"
    assert other.started == 1
    await _stopped(supervisor, running)


async def test_pauses_grow_to_a_limit_and_shrink_after_health(
    supervisor: Supervisor, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    real_sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await real_sleep(0)

    async def healthy_then_boom() -> None:
        clock.advance(module.HEALTHY_AFTER_S)
        await boom()

    work = Work(boom, boom, boom, boom, healthy_then_boom, forever)
    supervisor.add(work)
    running = asyncio.create_task(supervisor.run())
    monkeypatch.setattr(module.asyncio, "sleep", noted)
    while work.started < 6:
        await real_sleep(0.001)
    monkeypatch.undo()
    assert pauses == [0.01, 0.02, 0.04, 0.04, 0.01]
    await _stopped(supervisor, running)


async def test_the_alert_goes_once_the_service_is_well_again(
    supervisor: Supervisor, alerts: AlertBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEALTHY_AFTER_S", 0.05)
    work = Work(boom, forever)
    supervisor.add(work)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: work.started == 2)
    assert alerts.view().alerts
    await _until(lambda: not alerts.view().alerts)
    await _stopped(supervisor, running)


async def test_the_alert_stays_while_it_waits_to_start_again(
    supervisor: Supervisor, alerts: AlertBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEALTHY_AFTER_S", 0.02)
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 5.0)
    supervisor.add(Work(boom))
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: bool(alerts.view().alerts))
    await asyncio.sleep(0.06)
    assert alerts.view().alerts
    await _stopped(supervisor, running)


async def test_a_service_that_returns_is_done(supervisor: Supervisor, alerts: AlertBoard) -> None:
    work = Work(boom, done)
    supervisor.add(work)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: work.ended == 2)
    await asyncio.sleep(0.03)
    assert work.started == 2
    assert not alerts.view().alerts
    assert not running.done()
    await _stopped(supervisor, running)


async def test_a_service_cancelled_from_inside_does_not_die_unseen(
    supervisor: Supervisor, alerts: AlertBoard
) -> None:
    async def lost_helper() -> None:
        helper = asyncio.create_task(forever())
        await asyncio.sleep(0)
        helper.cancel()
        await helper

    work = Work(lost_helper, forever)
    supervisor.add(work)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: work.started == 2)
    assert "cancelled" in alerts.view().alerts[0].message
    await _stopped(supervisor, running)


async def test_a_vital_failure_ends_everything_with_its_fault(supervisor: Supervisor) -> None:
    other = Work(forever)
    supervisor.add(other)
    supervisor.add(Work(full, name="listener"), vital=True)
    with pytest.raises(EnvError, match="the disk is full"):
        await asyncio.wait_for(supervisor.run(), 3)
    assert other.ended == 1


async def test_a_vital_bug_is_not_wrapped(supervisor: Supervisor) -> None:
    supervisor.add(Work(boom), vital=True)
    with pytest.raises(RuntimeError, match="boom"):
        await asyncio.wait_for(supervisor.run(), 3)


async def test_a_failure_while_stopping_is_reported(supervisor: Supervisor) -> None:
    async def bad_leave() -> None:
        try:
            await forever()
        finally:
            await full()

    work = Work(bad_leave)
    supervisor.add(work, vital=True)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: work.started == 1)
    supervisor.stop()
    with pytest.raises(EnvError):
        await asyncio.wait_for(running, 3)


async def test_cancelling_run_cancels_the_services(supervisor: Supervisor) -> None:
    work = Work(forever)
    supervisor.add(work)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: work.started == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert work.ended == 1


async def test_a_service_added_while_stopping_is_not_started(supervisor: Supervisor) -> None:
    late = Work(forever, name="late")

    async def adds_late() -> None:
        try:
            await forever()
        finally:
            supervisor.add(late)

    work = Work(adds_late)
    supervisor.add(work)
    running = asyncio.create_task(supervisor.run())
    await _until(lambda: work.started == 1)
    await _stopped(supervisor, running)
    assert late.started == 0
