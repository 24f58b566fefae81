from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.events import Event, JobChanged, JobProgress
from relaydesk.core.view.sections import JobView
from relaydesk.engine import jobs as module
from relaydesk.engine.bus import Bus
from relaydesk.engine.jobs import KEPT, RUNNING_LIMIT, Job, JobBoard
from tests.support.clock import FakeClock, FakeRng


class Desk:
    def __init__(self) -> None:
        bus = Bus()
        self.events: list[Event] = []
        bus.listen(self.events.append)
        self.board = JobBoard(FakeClock(), FakeRng(), bus)

    def start(self, work: Callable[[Job], Awaitable[None]], subject: str = "x") -> str:
        return self.board.start("load", subject, work)

    def seen(self, job_id: str) -> JobView:
        return next(job for job in self.board.view().jobs if job.id == job_id)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def for_ever(_: Job) -> None:
    await asyncio.Event().wait()


async def test_a_job_reports_and_ends() -> None:
    desk = Desk()
    gate = asyncio.Event()

    async def work(job: Job) -> None:
        job.progress(3, 10, 5, "a\x1b[2J note")
        await gate.wait()

    job = desk.start(work)
    assert desk.seen(job).state == "running"
    await settle()
    view = desk.seen(job)
    assert (view.done, view.total, view.rate_per_s) == (3, 10, 5)
    assert "\x1b" not in view.note
    gate.set()
    await settle()
    assert desk.seen(job).state == "done"
    assert desk.seen(job).fault is None
    assert desk.events == [JobChanged(job), JobProgress(job), JobChanged(job)]


async def test_a_job_that_fails_says_why() -> None:
    desk = Desk()

    async def fails(_: Job) -> None:
        raise EnvError("pull_failed", "the hub said no", "try later")

    async def breaks(_: Job) -> None:
        raise KeyError("secret detail")

    one, other = desk.start(fails), desk.start(breaks)
    await settle()
    fault = desk.seen(one).fault
    assert fault is not None
    assert (desk.seen(one).state, fault.message, fault.hint) == ("failed", "the hub said no", "try later")
    fault = desk.seen(other).fault
    assert fault is not None
    assert fault.code == "internal_error"
    assert "secret detail" not in fault.message + fault.hint


async def test_cancel_waits_for_the_end() -> None:
    desk = Desk()
    cleaned: list[str] = []

    async def work(_: Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.append("x")

    job = desk.start(work)
    await settle()
    await desk.board.cancel(job)
    assert cleaned == ["x"]
    assert desk.seen(job).state == "cancelled"
    for gone in (job, "job_nothing"):
        with pytest.raises(LocalError) as caught:
            await desk.board.cancel(gone)
        assert caught.value.fault.code == "not_found"


async def test_a_job_cancelled_before_its_first_step_is_over_too() -> None:
    desk = Desk()
    job = desk.start(for_ever)
    await desk.board.cancel(job)
    await settle()
    assert desk.seen(job).state == "cancelled"
    assert desk.events[-1] == JobChanged(job)


async def test_close_ends_all() -> None:
    desk = Desk()
    jobs = [desk.start(for_ever) for _ in range(3)]
    await desk.board.close()
    await settle()
    assert {desk.seen(job).state for job in jobs} == {"cancelled"}


async def test_progress_after_the_end_is_dropped() -> None:
    desk = Desk()
    kept: list[Job] = []

    async def work(job: Job) -> None:
        kept.append(job)

    job = desk.start(work)
    await settle()
    kept[0].progress(9, 9)
    assert desk.seen(job).done == 0


async def test_only_so_many_run() -> None:
    desk = Desk()
    for _ in range(RUNNING_LIMIT):
        desk.start(for_ever)
    with pytest.raises(LocalError) as caught:
        desk.start(for_ever)
    assert caught.value.fault.code == "refused"
    assert len(desk.board.view().jobs) == RUNNING_LIMIT
    await desk.board.close()
    await settle()
    desk.start(for_ever)
    await desk.board.close()


async def test_the_newest_are_kept_and_running_ones_always(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    monkeypatch.setattr(module, "KEPT", 3)
    running = desk.start(for_ever, "long")

    async def nothing(_: Job) -> None:
        pass

    for number in range(KEPT + 20):
        desk.start(nothing, str(number))
        await settle()
    shown = desk.board.view().jobs
    assert len(shown) <= 5
    assert shown[0].subject == str(KEPT + 19)
    assert running in [job.id for job in shown]
    await desk.board.close()


async def test_a_job_that_failed_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()

    async def work(_: Job) -> None:
        raise EnvError("pull_failed", "the disk is full", "make room")

    desk.start(work, "smollm2")
    await settle()
    assert [record.getMessage() for record in caplog.records] == ["load smollm2 failed: the disk is full"]
