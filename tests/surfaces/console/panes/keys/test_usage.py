"""What a key used by day, as a chart."""

from __future__ import annotations

import pytest

from relaydesk.surfaces.console.panes.keys import usage
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import TODAY, USAGE, texts

FOUND = usage.as_usage(USAGE)


def test_an_answer_is_read_or_refused() -> None:
    assert FOUND is not None
    assert FOUND.days[1] == usage.DayUsed(TODAY - 12, 13, 61_000)
    assert usage.as_usage({"days": [{"day": "x"}]}) is None
    assert usage.as_usage(None) is None


def test_the_view_knows_today_better_than_the_answer() -> None:
    assert FOUND is not None
    lines = texts(usage.lines(FOUND, TODAY, 91_300, 70))
    # 20,000 + 61,000 + 140,000 + 35,500 + 180,250 of the days before.
    assert lines[0] == "Tokens a day  528.0 k in 30 days, most 180.2 k"
    assert lines[-1].split() == ["Feb", "13", "today", "(UTC)"]


def test_where_there_is_less_room_there_are_fewer_days() -> None:
    assert FOUND is not None
    assert "in 14 days" in texts(usage.lines(FOUND, TODAY, 0, 38))[0]
    assert "in 30 days" in texts(usage.lines(FOUND, TODAY, 0, 70, ascii=True))[0]


def test_nothing_is_said_and_not_drawn() -> None:
    assert texts(usage.lines(usage.Usage(), TODAY, 0, 60)) == ["Tokens a day", "○ Nothing in 30 days."]


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("width", [38, 44, 56, 78, 118])
def test_no_line_is_wider_than_there_is_room(width: int, ascii: bool) -> None:
    assert FOUND is not None
    lines = usage.lines(FOUND, TODAY, 91_300, width, ascii=ascii)
    assert len(lines) == usage.HEIGHT + 2
    assert all(line_width(line) <= width for line in lines)
    if ascii:
        assert all(text.isascii() for text in texts(lines))
