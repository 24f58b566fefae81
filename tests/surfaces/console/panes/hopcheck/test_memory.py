"""What a view tells of a check that is followed."""

from __future__ import annotations

from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import FaultView, JobsView
from relaydesk.surfaces.console.panes.hopcheck.memory import Memory, News
from tests.surfaces.console.panes.hopcheck.scenes import CLEAN, FOUND, IDLE, NOW_MS, jobs, later, under_way
from tests.surfaces.console.panes.hopcheck.scenes import with_report as ended

NOTHING = News()


def test_a_report_that_was_there_already_is_no_news() -> None:
    memory = Memory()
    assert memory.take(FOUND, None, NOW_MS) == NOTHING
    assert memory.take(FOUND, None, NOW_MS) == NOTHING
    assert (memory.last, memory.before) == (FOUND.report, None)


def test_a_check_ends_and_the_one_before_is_kept() -> None:
    memory = Memory()
    memory.take(FOUND, None, NOW_MS)
    memory.begin("job_0123456789ab")
    assert memory.take(FOUND, JobsView(), NOW_MS) == NOTHING
    asked = memory.asked
    assert memory.take(under_way(3), jobs("running"), NOW_MS) == NOTHING
    assert (asked, memory.asked) == (True, False)
    assert CLEAN.report is not None
    assert memory.take(ended(later(CLEAN.report)), jobs("done"), NOW_MS) == News("ended")
    assert memory.before == FOUND.report
    assert memory.job == ""


def test_a_check_that_was_over_before_anybody_looked_has_ended() -> None:
    memory = Memory()
    memory.begin("job_0123456789ab")
    assert memory.take(CLEAN, jobs("done"), NOW_MS) == News("ended")


def test_a_check_of_somebody_else_is_followed_too() -> None:
    memory = Memory()
    memory.take(under_way(3), jobs("running"), NOW_MS)
    assert memory.job == "job_0123456789ab"
    assert memory.take(CLEAN, jobs("done"), NOW_MS) == News("ended")


def test_cancelled_failed_and_gone_are_broken_off() -> None:
    fault = FaultView("conflict", safe_text("the network closed"), safe_text("see the log"))
    for rows, why in ((jobs("cancelled"), None), (jobs("failed", fault=fault), fault), (JobsView(), None)):
        memory = Memory()
        memory.take(under_way(3), jobs("running"), NOW_MS)
        # The job is told of apart from the check: it may be the later of the two.
        assert memory.take(IDLE, jobs("running"), NOW_MS) == NOTHING
        assert memory.take(IDLE, rows, NOW_MS) == News("broken off", why)
        assert memory.take(IDLE, rows, NOW_MS) == NOTHING


def test_what_was_asked_of_a_node_that_is_gone_is_forgotten() -> None:
    memory = Memory()
    memory.begin("job_0123456789ab")
    memory.forget()
    assert memory.take(IDLE, JobsView(), NOW_MS) == NOTHING
    assert (memory.job, memory.asked) == ("", False)


def test_when_probes_began_is_kept_while_they_run() -> None:
    memory = Memory()
    memory.take(under_way(3), None, NOW_MS)
    first = dict(memory.since)
    assert set(first.values()) == {NOW_MS}
    memory.take(under_way(5), None, NOW_MS + 2_000)
    assert sorted(memory.since.values()) == [NOW_MS, NOW_MS, NOW_MS + 2_000, NOW_MS + 2_000]
    memory.take(IDLE, None, NOW_MS)
    assert memory.since == {}
