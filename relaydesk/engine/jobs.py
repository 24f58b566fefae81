"""Long commands: pulls and loads that an operator asked for, watched by everyone, stopped by anyone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from relaydesk.core.codec import fault_view
from relaydesk.core.errors import Fault, FaultError, LocalError
from relaydesk.core.events import JobChanged, JobProgress
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import JobsView, JobView
from relaydesk.engine.bus import Bus
from relaydesk.engine.tasks import cancel_and_wait, spawn

_log: Final = logging.getLogger(__name__)

KEPT: Final = 50
RUNNING_LIMIT: Final = 16

JobState = Literal["running", "done", "failed", "cancelled"]


class Job:
    """What a job's work reports through."""

    def __init__(self, board: JobBoard, job_id: str) -> None:
        self._board = board
        self.id = job_id

    def progress(self, done: int, total: int, rate_per_s: int = 0, note: str = "") -> None:
        """Say how far it is: ``done`` of ``total`` (0: unknown), in bytes or per mille."""
        self._board.update(self.id, done=done, total=total, rate_per_s=rate_per_s, note=safe_text(note))


class JobBoard:
    """All jobs under way and the newest that ended."""

    def __init__(self, clock: Clock, rng: Rng, bus: Bus) -> None:
        self._clock = clock
        self._rng = rng
        self._bus = bus
        self._views: dict[str, JobView] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, kind: str, subject: str, work: Callable[[Job], Awaitable[None]]) -> str:
        """Begin ``work`` and return the job's id. Raises `LocalError` where too many run."""
        if len(self._tasks) >= RUNNING_LIMIT:
            raise LocalError("refused", f"{RUNNING_LIMIT} jobs run already", "wait for one, or cancel it")
        job_id = "job_" + self._rng.token_bytes(6).hex()
        self._views[job_id] = JobView(job_id, kind, subject, "running", self._clock.wall_ms())
        for old in [each for each in self._views if each not in self._tasks][:-KEPT]:
            del self._views[old]
        task = spawn(self._run(job_id, work), name=f"{kind} {subject}")
        self._tasks[job_id] = task
        task.add_done_callback(lambda _: self._on_end(job_id))
        self._bus.publish(JobChanged(job_id))
        return job_id

    async def cancel(self, job_id: str) -> None:
        """Stop a job. Raises `LocalError` ``not_found`` for one that does not run."""
        task = self._tasks.get(job_id)
        if task is None:
            raise LocalError("not_found", f"no job {job_id} is running", "see the list of jobs")
        await cancel_and_wait(task)

    async def close(self) -> None:
        """Stop all jobs."""
        for task in tuple(self._tasks.values()):
            await cancel_and_wait(task)

    def update(self, job_id: str, **changes: object) -> None:
        """Replace fields of a running job's view."""
        view = self._views.get(job_id)
        if view is not None and view.state == "running":
            self._views[job_id] = msgspec.structs.replace(view, **changes)
            self._bus.publish(JobProgress(job_id))

    def view(self) -> JobsView:
        """All jobs, newest first."""
        return JobsView(tuple(reversed(self._views.values())))

    async def _run(self, job_id: str, work: Callable[[Job], Awaitable[None]]) -> None:
        fault: Fault | None = None
        state: JobState = "done"
        try:
            await work(Job(self, job_id))
        except asyncio.CancelledError:
            state = "cancelled"
            raise
        except FaultError as error:
            state, fault = "failed", error.fault
            view = self._views[job_id]
            _log.warning("%s %s failed: %s", view.kind, view.subject, error.fault.message)
        except Exception:
            _log.exception("job %s failed inside relaydesk", job_id)
            state, fault = "failed", Fault("internal_error", "the job failed inside relaydesk", "see the log")
        finally:
            self._close(job_id, state, fault)

    def _on_end(self, job_id: str) -> None:
        self._tasks.pop(job_id, None)
        # A task that is cancelled before its first step never says so itself.
        if self._views[job_id].state == "running":
            self._close(job_id, "cancelled", None)

    def _close(self, job_id: str, state: JobState, fault: Fault | None) -> None:
        shown = fault_view(fault) if fault is not None else None
        self._views[job_id] = msgspec.structs.replace(self._views[job_id], state=state, fault=shown)
        self._bus.publish(JobChanged(job_id))
