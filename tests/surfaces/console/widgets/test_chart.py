from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.widgets.chart import LineChart, Series, line_chart, round_top
from relaydesk.surfaces.console.widgets.spans import line_text, line_width
from tests.surfaces.console.widgets.widget_app import WidgetApp, screen_lines


def _text(*series: Series, width: int, height: int, ascii: bool = False, filled: bool = False) -> list[str]:
    lines = line_chart(series, width, height, peak=8, ascii=ascii, filled=filled)
    return [line_text(line) for line in lines]


def test_a_line_climbs() -> None:
    climb = Series([0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert _text(climb, width=8, height=2) == ["     ⢀⡠⠊", "   ⢀⠔⠁  "]
    assert _text(climb, width=9, height=2, ascii=True) == ["    __--^", "_--^     "]


def test_a_jump_is_joined() -> None:
    assert _text(Series([0, 0, 8, 8]), width=2, height=2) == [" ⡏", "⣀⠇"]
    assert _text(Series([8, 0]), width=2, height=2, ascii=True) == ["^|", " |"]


def test_the_axis_stands_at_the_left_while_there_is_room() -> None:
    lines = _text(Series([8]), width=20, height=5)
    assert [line[:3] for line in lines] == ["8 │", "  │", "4 │", "  │", "0 │"]
    assert all("│" not in line for line in _text(Series([8]), width=9, height=5))
    assert _text(Series([8]), width=20, height=5, ascii=True)[0][:3] == "8 |"


def test_gaps_stay_empty_and_areas_are_filled() -> None:
    assert _text(Series([8, None, None, 8]), width=2, height=1) == ["⠁⠈"]
    assert _text(Series([8, None, 0, 0]), width=2, height=1) == ["⠁⣀"]
    assert _text(Series([8, None, None, 8]), width=2, height=1, filled=True) == ["⡇⢸"]
    assert _text(Series([8, None, 0, 4]), width=4, height=1, ascii=True, filled=True) == ["# .:"]


def test_the_later_series_gives_the_tone() -> None:
    lines = line_chart((Series([0] * 8, "ok"), Series([0, 0], "warn")), 4, 1, peak=8)
    assert [(span.text, span.tone) for span in lines[0]] == [("⣀⣀⣀", "ok"), ("⣀", "warn")]


@pytest.mark.parametrize(
    ("value", "top"),
    [
        (0, 1),
        (1, 1),
        (1.2, 2),
        (3, 5),
        (7, 10),
        (10, 10),
        (11, 20),
        (0.3, 0.5),
        (499, 500),
        (float("inf"), 1),
    ],
)
def test_round_tops(value: float, top: float) -> None:
    assert round_top(value) == pytest.approx(top)


@given(
    st.lists(
        st.builds(Series, st.lists(st.none() | st.floats() | st.integers(0, 99), max_size=90), st.just("ok")),
        max_size=3,
    ),
    st.integers(0, 40),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
    st.none() | st.floats(),
)
@settings(max_examples=200, deadline=None)
def test_a_chart_has_its_size(
    series: list[Series], width: int, height: int, ascii: bool, filled: bool, peak: float | None
) -> None:
    lines = line_chart(series, width, height, ascii=ascii, filled=filled, peak=peak)
    assert len(lines) == (height if width else 0)
    assert all(line_width(line) == width for line in lines)
    assert all(line_text(line).isascii() for line in lines) or not ascii


async def test_the_widget_draws_only_lines_that_changed() -> None:
    app = WidgetApp(LineChart((Series([0] * 40),), peak=8))
    async with app.run_test(size=(20, 5)) as pilot:
        chart = app.query_one(LineChart)
        assert screen_lines(app)[4] == "0 │" + "⣀" * 17
        before = chart.lines_rendered
        chart.series = (Series([0] * 41),)
        await pilot.pause()
        assert chart.lines_rendered == before
        chart.series = (Series([0] * 40 + [1]),)
        await pilot.pause()
        assert chart.lines_rendered == before + 1
