"""What the wizard keeps while it is closed: the plan, what was typed, and the run before the last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from relaydesk.core.view.hopcheck import HopCheckView, HopReportView
from relaydesk.core.view.sections import FaultView, JobsView
from relaydesk.surfaces.console.panes.hopcheck.plan import Plan


class News(NamedTuple):
    """What a view tells: a check has ended, or was broken off; ``fault`` says why, where one is to blame."""

    what: Literal["", "ended", "broken off"] = ""
    fault: FaultView | None = None


NOTHING = News()


@dataclass(slots=True)
class Memory:
    """Lives as long as its console.

    ``typed`` are answers of a form that was left, by what it was about. ``since`` is when each probe was
    first seen running, by layer and id. ``job`` is the check that is followed; ``asked`` while it was started
    here and has not been seen to begin.
    """

    plan: Plan = field(default_factory=Plan)
    typed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    last: HopReportView | None = None
    before: HopReportView | None = None
    since: dict[tuple[str, str], int] = field(default_factory=dict)
    job: str = ""
    asked: bool = False

    def begin(self, job: str) -> None:
        """A check was started here."""
        self.job, self.asked = job, True

    def forget(self) -> None:
        """The node is gone, and with it what it was asked."""
        self.job, self.asked = "", False

    def take(self, view: HopCheckView, jobs: JobsView | None, now_ms: int) -> News:
        """Note a new view, and tell what it brings."""
        running = {(each.layer, each.id) for each in view.probes if each.state == "running"}
        self.since = {each: self.since.get(each, now_ms) for each in running}
        if view.running:
            self.job, self.asked = view.job, False
        report = view.report
        if report is not None and (self.last is None or report.at_ms != self.last.at_ms):
            followed = bool(self.job) or self.last is not None
            self.before, self.last = self.last, report
            if not view.running:
                self.forget()
            return News("ended") if followed else NOTHING
        return NOTHING if view.running or not self.job else self._without_report(jobs)

    def _without_report(self, jobs: JobsView | None) -> News:
        """What became of a check that is followed and does not run."""
        rows = jobs.jobs if jobs is not None else ()
        row = next((each for each in rows if each.id == self.job), None)
        if row.state == "running" if row is not None else self.asked:
            return NOTHING
        self.forget()
        return News("broken off", row.fault if row is not None else None)
