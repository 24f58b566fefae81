"""Jobs that failed and that nobody needs to be told of any longer: dismissed, or told for some minutes."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import JobsView, JobView

# Long enough to be read by somebody who was away for a moment.
TOLD_MS: Final = 5 * 60_000


class Dismissed:
    """Which failed jobs panes are shown. Times are wall-clock milliseconds."""

    def __init__(self) -> None:
        # By job: since when it has been told of; 0 where it was dismissed.
        self._since: dict[str, int] = {}

    def dismiss(self, view: NodeView, now_ms: int) -> bool:
        """Tell no more of those that are told of; False where none is."""
        told = [job.id for job in _failed(view.jobs.value) if not self._hidden(job, now_ms)]
        self._since.update(dict.fromkeys(told, 0))
        return bool(told)

    def without(self, view: NodeView, now_ms: int) -> NodeView:
        """The view as panes get it; the same one where there is nothing to leave out."""
        jobs = view.jobs.value
        if jobs is None:
            return view
        for job in _failed(jobs):
            self._since.setdefault(job.id, now_ms)
        kept = tuple(job for job in jobs.jobs if not self._hidden(job, now_ms))
        if len(kept) == len(jobs.jobs):
            return view
        section = msgspec.structs.replace(view.jobs, value=JobsView(kept))
        return msgspec.structs.replace(view, jobs=section)

    def _hidden(self, job: JobView, now_ms: int) -> bool:
        since = self._since.get(job.id, now_ms)
        return job.state == "failed" and now_ms - since >= TOLD_MS


def _failed(jobs: JobsView | None) -> list[JobView]:
    return [job for job in jobs.jobs if job.state == "failed"] if jobs is not None else []
