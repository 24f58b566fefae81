"""What was earned by day, as a bar a day with its models in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from relaydesk.core.view.amounts import plural
from relaydesk.core.view.ledger import EarningView
from relaydesk.surfaces.console.panes.keys.usage import day_name
from relaydesk.surfaces.console.panes.ledger.words import UNIT, amount, day
from relaydesk.surfaces.console.panes.prose import NOTHING, fact
from relaydesk.surfaces.console.widgets.bar import Part, fill, stacked_bar
from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.spans import Line, Span

DAYS: Final = 14
# Models with a filling of their own; the others go together.
_MODELS: Final = 4
_ROOM: Final = 12
_DAY: Final = 7


def lines(
    each: EarningView, earnings: Sequence[EarningView], today: int, width: int, *, ascii: bool = False
) -> tuple[Line, ...]:
    """One row of earnings, and the fortnight around it."""
    mean = f"{amount(each.earned // each.tickets)} each" if each.tickets else ""
    made: list[Line] = [
        (Span(fit(each.model, max(1, width - 12)).rstrip(), "strong"), Span(f"  {day(each.day)}"))
    ]
    made.append(NOTHING)
    made += fact("earned", f"{amount(each.earned)} {UNIT}", width, "ok", room=_ROOM)
    made += fact("tickets", f"{each.tickets:,} ended, {mean}" if mean else "none ended", width, room=_ROOM)
    made += fact("paid back", amount(each.refunded) if each.refunded else "nothing", width, room=_ROOM)
    return (*made, NOTHING, *_days(tuple(earnings), max(today, each.day), width, ascii=ascii))


# Only the last day changes, and bars are most of a card's work.
@lru_cache(maxsize=16)
def _days(earnings: tuple[EarningView, ...], last: int, width: int, *, ascii: bool) -> tuple[Line, ...]:
    span = range(last - DAYS + 1, last + 1)
    by_day: dict[int, dict[str, int]] = {number: defaultdict(int) for number in span}
    totals: dict[str, int] = defaultdict(int)
    for each in earnings:
        if each.day in by_day:
            by_day[each.day][each.model] += each.earned
            totals[each.model] += each.earned
    ranked = sorted(totals, key=lambda model: (-totals[model], model))
    names = [*ranked[:_MODELS], *(["others"] if len(ranked) > _MODELS else [])]
    rest = frozenset(ranked[_MODELS:])
    sums = {number: sum(found.values()) for number, found in by_day.items()}
    most, whole = max(sums.values()), sum(sums.values())
    room = cells(amount(most))
    head: Line = (Span("Earned a day", "strong"), Span(f"  {amount(whole)} in {plural(DAYS, 'day')}", "dim"))
    made: list[Line] = [head]
    for number in reversed(span):
        parts = [
            Part(
                name,
                by_day[number].get(name, 0)
                if name in totals
                else sum(by_day[number].get(one, 0) for one in rest),
                f"part-{at + 1}",
            )
            for at, name in enumerate(names)
        ]
        bar = stacked_bar(parts, most, max(1, width - _DAY - room - 2), ascii=ascii) if most else ()
        made.append(
            (
                Span(fit("today" if number == last else day_name(number), _DAY), "dim"),
                *bar,
                Span(f"  {fit(amount(sums[number]), room, 'right')}", "" if sums[number] else "faint"),
            )
        )
    return (*made, NOTHING, *_names(names, totals, rest, width, ascii=ascii))


def _names(
    names: Sequence[str], totals: dict[str, int], rest: frozenset[str], width: int, *, ascii: bool
) -> tuple[Line, ...]:
    made: list[Line] = []
    for at, name in enumerate(names):
        earned = amount(totals[name] if name in totals else sum(totals[one] for one in rest))
        room = max(1, width - 5 - cells(earned))
        made.append(
            (
                Span(f"{fill(at, ascii=ascii) * 2} ", f"part-{at + 1}"),
                Span(fit(name, room)),
                Span(f"  {earned}", "strong"),
            )
        )
    return tuple(made)
