"""Pulls and loads under way."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import JobsView, JobView
from relaydesk.surfaces.console.panes.models import jobs
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import LOAD_FAILED, PULL, hostile, texts


def _ended(state: str) -> JobView:
    return msgspec.structs.replace(
        PULL, id="job_0", kind="load", subject="qwen3-32b", state=state, fault=LOAD_FAILED
    )


def test_a_pull_has_a_gauge_and_its_rate() -> None:
    (line,) = texts(jobs.lines(JobsView((PULL,)), 78))
    assert line.startswith("◐ pull smollm2  ███")
    assert line.endswith(" 40%  downloading, 12.0 MiB/s")


def test_where_the_whole_is_unknown_there_is_no_number() -> None:
    (line,) = texts(jobs.lines(JobsView((msgspec.structs.replace(PULL, total=0),)), 78))
    assert "%" not in line


def test_a_failure_stays_while_it_is_the_newest() -> None:
    assert texts(jobs.lines(JobsView((_ended("failed"),)), 60)) == [
        "✗ load qwen3-32b failed",
        "  ✗ the engine ended while it loaded qwen3-32b.",
        "    Next: see the log.",
        "  esc hides this; the log keeps it",
    ]
    assert len(jobs.lines(JobsView((PULL, _ended("failed"))), 60)) == 1
    assert jobs.lines(JobsView((_ended("done"), _ended("failed"))), 60) == ()
    assert jobs.lines(None, 60) == ()


def test_a_job_as_a_sentence() -> None:
    assert jobs.said(PULL) == "pull smollm2: downloading, 40 %, 12.0 MiB/s."
    assert jobs.said(JobView("j", "load", "m", "running", 0)) == "load m: under way."


@pytest.mark.parametrize("width", [40, 58, 118])
def test_no_line_is_wider_than_there_is_room(width: int) -> None:
    long = msgspec.structs.replace(PULL, note=safe_text("x" * 200), subject="y" * 200)
    for section in (JobsView((long, PULL)), hostile()["jobs"]):
        assert all(line_width(line) <= width for line in jobs.lines(section, width))
