from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from relaydesk.surfaces.console.widgets.spark import ASCII_BLOCKS, BLOCKS, Sparkline, sparkline
from tests.surfaces.console.widgets.widget_app import WidgetApp, screen_lines

VALUES = st.lists(
    st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.integers(-5, 500), max_size=40
)


@pytest.mark.parametrize(
    ("values", "width", "peak", "shown", "ascii"),
    [
        ((), 3, None, "   ", "   "),
        ((0, 0), 3, None, " ▁▁", " __"),
        ((0, 7, 3.5), 3, None, "▁█▅", "_#="),
        ((1, 2, 3, 7), 2, None, "▄█", "-#"),
        ((5,), 0, None, "", ""),
        ((0.001, 100), 2, None, "▂█", ".#"),
        ((50, None, 50), 3, 100, "▅ ▅", "= ="),
        ((200, -3, math.nan), 3, 100, "█▁ ", "#_ "),
        ((1, math.inf), 2, None, "▂█", ".#"),
    ],
)
def test_heights(
    values: tuple[float | None, ...], width: int, peak: float | None, shown: str, ascii: str
) -> None:
    assert sparkline(values, width, peak=peak) == shown
    assert sparkline(values, width, peak=peak, ascii=True) == ascii


@given(VALUES, st.integers(0, 50), st.booleans(), st.none() | st.floats())
@settings(max_examples=200, deadline=None)
def test_the_row_has_its_width(
    values: list[float | None], width: int, ascii: bool, peak: float | None
) -> None:
    row = sparkline(values, width, ascii=ascii, peak=peak)
    assert cell_len(row) == width
    assert set(row) <= set((ASCII_BLOCKS if ascii else BLOCKS) + " ")
    assert row.isascii() or not ascii


@given(st.lists(st.integers(0, 100), min_size=2, max_size=20))
@settings(max_examples=100, deadline=None)
def test_more_is_never_lower(values: list[int]) -> None:
    row = sparkline(values, len(values))
    for (a, low), (b, high) in zip(
        zip(values, row, strict=True), list(zip(values, row, strict=True))[1:], strict=False
    ):
        if a <= b:
            assert BLOCKS.index(low) <= BLOCKS.index(high)


async def test_the_widget_shows_the_latest() -> None:
    app = WidgetApp(Sparkline((0, 1, 7)))
    async with app.run_test(size=(10, 3)) as pilot:
        assert screen_lines(app)[0] == "       ▁▂█"
        spark = app.query_one(Sparkline)
        spark.values = (0, 1, 7, 0)
        await pilot.pause()
        assert screen_lines(app)[0] == "      ▁▂█▁"
        spark.ascii = True
        await pilot.pause()
        assert screen_lines(app)[0] == "      _.#_"
