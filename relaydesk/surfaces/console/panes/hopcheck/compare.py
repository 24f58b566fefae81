"""What is another than in the run before: which findings are gone, new, or still there."""

from __future__ import annotations

from typing import NamedTuple

from relaydesk.core.view.amounts import plural
from relaydesk.core.view.hopcheck import FindingView, HopReportView
from relaydesk.surfaces.console.states import clock_time


class Change(NamedTuple):
    """A sentence and its tone."""

    tone: str
    text: str


def changes(report: HopReportView, before: HopReportView | None) -> tuple[Change, ...]:
    """The changes since ``before``, what is gone first; none where there is nothing to compare with."""
    if before is None:
        return ()
    when = clock_time(before.at_ms)
    if before.url != report.url:
        return (Change("dim", f"The run before, at {when}, was of {before.url}."),)
    now, then = _keyed(report), _keyed(before)
    made = [Change("ok", f"Gone since {when}: {then[key].title}.") for key in then if key not in now]
    made += [Change("error", f"New since {when}: {now[key].title}.") for key in now if key not in then]
    still = [now[key] for key in now if key in then]
    if len(still) == 1:
        made.append(Change("warn", f"As at {when}: {still[0].title}."))
    elif still:
        made.append(Change("warn", f"As at {when}: {plural(len(still), 'finding')}."))
    return tuple(made) or (Change("dim", f"Nothing is another than at {when}."),)


def _keyed(report: HopReportView) -> dict[tuple[str, str], FindingView]:
    return {(each.code, each.layer): each for each in report.findings}
