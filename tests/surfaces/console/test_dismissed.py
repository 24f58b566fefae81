"""Failed jobs that nobody needs to be told of any longer."""

from __future__ import annotations

from typing import Any

import msgspec

from relaydesk.core.view.node_view import NodeView, loading_view
from relaydesk.core.view.sections import JobsView, Section
from relaydesk.surfaces.console.dismissed import TOLD_MS, Dismissed
from tests.surfaces.console.panes.scenes import LOAD_FAILED, PULL
from tests.surfaces.console.stage import NOW_MS

FAILED = msgspec.structs.replace(PULL, id="job_0", state="failed", fault=LOAD_FAILED)


def _view(*jobs: Any) -> NodeView:
    return msgspec.structs.replace(loading_view(NOW_MS), jobs=Section("ready", NOW_MS, JobsView(jobs)))


def _told(view: NodeView) -> list[str]:
    assert view.jobs.value is not None
    return [job.id for job in view.jobs.value.jobs]


def test_what_failed_is_told_for_some_minutes_and_what_runs_always() -> None:
    dismissed, view = Dismissed(), _view(PULL, FAILED)
    assert dismissed.without(view, NOW_MS) is view
    assert _told(dismissed.without(view, NOW_MS + TOLD_MS - 1)) == ["job_1", "job_0"]
    assert _told(dismissed.without(view, NOW_MS + TOLD_MS)) == ["job_1"]


def test_dismissed_is_dismissed_and_another_failure_is_told() -> None:
    dismissed, view = Dismissed(), _view(FAILED)
    assert dismissed.dismiss(view, NOW_MS)
    assert not dismissed.dismiss(view, NOW_MS)
    assert _told(dismissed.without(view, NOW_MS)) == []
    again = msgspec.structs.replace(FAILED, id="job_2")
    assert _told(dismissed.without(_view(again, FAILED), NOW_MS)) == ["job_2"]


def test_nothing_is_dismissed_of_a_view_without_jobs() -> None:
    assert not Dismissed().dismiss(loading_view(NOW_MS), NOW_MS)
    assert not Dismissed().dismiss(_view(PULL), NOW_MS)
