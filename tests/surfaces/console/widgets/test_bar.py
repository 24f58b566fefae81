from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.widgets.bar import (
    Part,
    StackedBar,
    allot,
    legend,
    limit_line,
    stacked_bar,
)
from relaydesk.surfaces.console.widgets.spans import line_text, line_width
from tests.surfaces.console.widgets.widget_app import WidgetApp, screen_lines

NEED = (Part("weights", 60, "part-1"), Part("KV", 30, "part-2"))


@pytest.mark.parametrize(
    ("parts", "total", "width", "shown", "ascii"),
    [
        (NEED, 100, 10, "██████▓▓▓·", "######===."),
        (NEED, 90, 9, "██████▓▓▓", "######==="),
        (NEED, 45, 9, "██████▓▓▓", "######==="),
        (NEED, 1000, 10, "█▓········", "#=........"),
        ((Part("a", 1000), Part("b", 0.1)), 1000, 10, "█████████▓", "#########="),
        ((Part("a", 0), Part("b", 5)), 5, 4, "▓▓▓▓", "===="),
        ((), 10, 3, "···", "..."),
        ((), 0, 3, "···", "..."),
        (NEED, 100, 0, "", ""),
    ],
)
def test_bars(parts: tuple[Part, ...], total: float, width: int, shown: str, ascii: str) -> None:
    assert line_text(stacked_bar(parts, total, width)) == shown
    assert line_text(stacked_bar(parts, total, width, ascii=True)) == ascii


@pytest.mark.parametrize(
    ("total", "width", "shown"),
    [
        (100, 20, "          100 free ▲"),
        (45, 20, "         ▲ 45 free  "),
        (45, 12, "     ▲      "),
        (9, 20, " ▲ 9 free           "),
        (0, 10, "▲ 0 free  "),
    ],
)
def test_the_limit_stands_where_the_total_ends(total: float, width: int, shown: str) -> None:
    assert line_text(limit_line(NEED, total, width, f"{total} free")) == shown
    assert line_text(limit_line(NEED, total, width, f"{total} free", ascii=True)) == shown.replace("▲", "^")


def test_the_legend_says_it_in_words() -> None:
    lines = legend(NEED, 40, lambda value: f"{value:g} MiB")
    assert [line_text(line) for line in lines] == ["██ weights  60 MiB", "▓▓ KV       30 MiB"]
    assert [line[0].tone for line in lines] == ["part-1", "part-2"]
    assert all(line_text(line).isascii() for line in legend(NEED, 40, ascii=True))


PARTS = st.lists(
    st.builds(
        Part,
        st.text(st.sampled_from("ab漢 \x1b"), max_size=8),
        st.floats(-10, 1e6),
        st.sampled_from(["", "ok"]),
    ),
    max_size=7,
)


@given(PARTS, st.floats(-5, 1e6), st.integers(0, 90), st.booleans())
@settings(max_examples=200, deadline=None)
def test_bars_have_their_width(parts: list[Part], total: float, width: int, ascii: bool) -> None:
    bar = stacked_bar(parts, total, width, ascii=ascii)
    assert line_width(bar) == width
    assert line_width(limit_line(parts, total, width, "as much as is free", ascii=ascii)) == width
    assert line_text(bar).isascii() or not ascii
    assert len(legend(parts, width, ascii=ascii)) == (len(parts) if width else 0)


@given(st.lists(st.floats(0, 1e6), max_size=7), st.floats(0, 1e6), st.integers(1, 90))
@settings(max_examples=200, deadline=None)
def test_shares_are_true_and_nothing_is_hidden(values: list[float], more: float, width: int) -> None:
    whole = sum(values) + more
    cells = allot(values, whole, width)
    assert all(count >= 0 for count in cells)
    assert sum(cells) <= width
    seen = [count for count, value in zip(cells, values, strict=True) if value > 0]
    if whole > 0 and len(seen) <= width:
        assert all(count > 0 for count in seen)
        for count, value in zip(cells, values, strict=True):
            # What small ones are given to be seen is taken from the others.
            assert abs(count - value / whole * width) <= 1 + len(values)


async def test_the_widget_shows_bar_limit_and_legend() -> None:
    app = WidgetApp(StackedBar(say="{:g} MiB".format))
    async with app.run_test(size=(20, 6)) as pilot:
        app.query_one(StackedBar).show(NEED, 45, "45 free")
        await pilot.pause()
        assert screen_lines(app)[:5] == [
            "█████████████▓▓▓▓▓▓▓",
            "         ▲ 45 free  ",
            "██ weights  60 MiB  ",
            "▓▓ KV       30 MiB  ",
            " " * 20,
        ]
