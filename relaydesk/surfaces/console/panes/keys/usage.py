"""What a key used by day (UTC), as a chart."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from relaydesk.core.view.amounts import count, plural
from relaydesk.surfaces.console.panes.prose import marked
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.chart import Series, line_chart
from relaydesk.surfaces.console.widgets.spans import Line, Span

MONTH: Final = 30
FORTNIGHT: Final = 14
HEIGHT: Final = 5
# Cells of the amounts at a chart's left.
_AMOUNTS: Final = 9
_TITLE: Final = "Tokens a day"
_DAY_S: Final = 86_400


class DayUsed(msgspec.Struct, frozen=True):
    """One day as the node answers it; ``day`` is in days since 1970."""

    day: int
    requests: int = 0
    tokens: int = 0


class Usage(msgspec.Struct, frozen=True):
    """What a key used. Days without a request are not in it."""

    days: tuple[DayUsed, ...] = ()


def as_usage(value: Any) -> Usage | None:
    """The node's answer; None where it makes no sense."""
    try:
        return msgspec.convert(value, Usage)
    except msgspec.ValidationError:
        return None


def day_name(day: int) -> str:
    """A day as ``Mar 14``."""
    at = datetime.fromtimestamp(day * _DAY_S, UTC)
    return f"{at:%b} {at.day}"


def lines(usage: Usage, today: int, used_today: int, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """The tokens of the last thirty days, or of fourteen where there is less room; today at the right.

    ``used_today`` is what the view says, newer than the answer.
    """
    cell = 1 if ascii else 2
    room = (width - _AMOUNTS) * cell
    span = MONTH if room >= 2 * MONTH else FORTNIGHT
    each = max(1, room // span)
    by_day = {row.day: row.tokens for row in usage.days} | {today: used_today}
    tokens = tuple(by_day.get(day, 0) for day in range(today - span + 1, today + 1))
    said = f"  {count(sum(tokens))} in {span} days"
    most = f", most {count(max(tokens))}"
    if cells(_TITLE) + cells(said) + cells(most) <= width:
        said += most
    head: Line = (Span(_TITLE, "strong"), Span(said, "dim"))
    if not any(tokens):
        return (
            (Span(_TITLE, "strong"),),
            *marked("dim", f"Nothing in {plural(span, 'day')}.", width),
        )
    chart = _chart(tokens, each, width, ascii=ascii)
    # A chart wide as the days stands at the right edge; so do the names of its ends.
    first, last = day_name(today - span + 1), "today (UTC)"
    plot = min(width, -(-each * span // cell))
    gap = max(1, plot - cells(first) - cells(last))
    return (head, *chart, (Span(" " * (width - plot)), Span(f"{first}{' ' * gap}{last}", "dim")))


# Only the last day changes, and a chart is most of a detail's work.
@lru_cache(maxsize=8)
def _chart(tokens: tuple[int, ...], each: int, width: int, *, ascii: bool) -> tuple[Line, ...]:
    series = Series(tuple(float(value) for value in tokens for _ in range(each)))
    return line_chart((series,), width, HEIGHT, filled=True, say=lambda value: count(int(value)), ascii=ascii)
