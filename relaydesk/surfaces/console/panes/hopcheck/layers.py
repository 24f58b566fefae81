"""The first step: what will be checked, and what it costs."""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.probes import QUICK_S, SILENCES
from relaydesk.core.view.amounts import duration
from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.surfaces.console.panes.hopcheck.plan import Entry, Plan
from relaydesk.surfaces.console.panes.keys.present import age, until
from relaydesk.surfaces.console.panes.prose import NOTHING, marked, paragraph, sentence
from relaydesk.surfaces.console.states import clock_time
from relaydesk.surfaces.console.widgets.cells import fit, wrap
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

COLUMNS: Final = (
    Column("layer", "LAYER", width=10),
    Column("url", "URL", width=30, min_width=24, fill=3),
    Column("origin", "WHERE FROM", width=16, min_width=15, priority=1),
)
WHY: Final = (
    "Every answer that this node relays carries X-Zs-Relay-Hop: 1. Where something in front of it takes that "
    "away, callers hold this node guilty of failures that are not its own. The check asks at each layer "
    "below, from the inside outwards, and tells which one it is. It asks these URLs and no others."
)
SHORT_WHY: Final = "Asked are these URLs and no others, from the inside outwards:"
_LONGEST: Final = max(SILENCES)
_ROOM: Final = 15


def intro(width: int, *, short: bool) -> tuple[Line, ...]:
    """What the check is for."""
    return paragraph(SHORT_WHY if short else WHY, width)


def rows(entries: tuple[Entry, ...]) -> tuple[Row, ...]:
    """The layers, from the inside outwards."""
    return tuple(
        Row(
            each.name,
            (
                Cell(each.name, "strong"),
                Cell(each.url, "accent" if each.mine else ""),
                Cell(each.origin, "" if each.mine else "dim"),
            ),
        )
        for each in entries
    )


def foot(plan: Plan, view: HopCheckView, now_ms: int, width: int, *, short: bool) -> tuple[Line, ...]:
    """What is missing, what the long silences cost, the command line, and what the node does by itself."""
    made: list[Line] = []
    if not plan.target(view):
        said = "This node advertises no URL: e gives the one that the world uses, or set RELAY_PUBLIC_URL."
        made += marked("warn", said, width)
    elif not plan.via:
        said = "Is there a proxy, tunnel or load balancer between? a adds it, so that it can be told apart."
        made += marked("dim", said, width)
    gap = () if short else (NOTHING,)
    made += [*gap, *_long(plan, width)] if made else _long(plan, width)
    by_itself = () if short else _schedule(view, now_ms, width)
    made += [*gap, *by_itself] if by_itself else []
    return (*made, *gap, *_line(plan.cli(view), width, most=1 if short else 3))


def _long(plan: Plan, width: int) -> tuple[Line, ...]:
    steps = ", ".join(f"{each:g}" for each in SILENCES[:-1]) + f" and {_LONGEST:g} s"
    head = f"[{'x' if plan.long else ' '}] long silences"
    if plan.long:
        said = f"{steps}: idle time-outs are found; takes over {duration(_LONGEST // 60 * 60)}"
    else:
        said = f"idle time-outs are not tested; takes {QUICK_S:g} s at most. l adds {steps}"
    room = cells(head) + 2
    return tuple(
        (Span(fit(head if at == 0 else "", room), "strong"), Span(line, "" if plan.long else "dim"))
        for at, line in enumerate(wrap(sentence(said), max(12, width - room)))
    )


def _schedule(view: HopCheckView, now_ms: int, width: int) -> tuple[Line, ...]:
    schedule, report = view.schedule, view.report
    if schedule.why:
        return marked("dim", f"By itself the node checks nothing: {sentence(schedule.why)}", width)
    if not schedule.interval_s:
        return ()
    every = f"By itself the node checks the advertised URL every {duration(schedule.interval_s)}"
    if schedule.passing is None:
        return marked("dim", f"{every}, for the first time in {until(schedule.next_at_ms, now_ms)}.", width)
    seen = age(schedule.last_at_ms, now_ms)
    ago = seen if seen == "just now" else f"{seen} ago"
    if schedule.passing:
        return marked("ok", f"{every}; {ago} it was well.", width, "dim")
    at = clock_time(schedule.last_at_ms)
    if report is not None and report.at_ms > schedule.last_at_ms:
        return marked("dim", f"{every}; at {at} it failed, before the last run here.", width)
    return marked("error", f"{every}; at {at}, {ago}, it failed: r tells what and where.", width)


def _line(cli: str, width: int, most: int) -> tuple[Line, ...]:
    label = "does the same as"
    room = _ROOM + 3
    found = wrap(cli, max(12, width - room))
    if len(found) > most:
        found = (*found[: most - 1], fit(" ".join(found[most - 1 :]), max(12, width - room)))
    return tuple(
        (Span(fit(label if at == 0 else "", room), "dim"), Span(line)) for at, line in enumerate(found)
    )
