"""Boxes beside and below each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relaydesk.surfaces.console.panes.overview.boxes import Box, column, frame, row, share
from relaydesk.surfaces.console.widgets.spans import Span, line_width
from tests.surfaces.console.panes.scenes import texts


def _box(title: str, *lines: str, least: int = 9, weight: int = 1) -> Box:
    return Box(title, tuple((Span(line),) for line in lines), least, weight)


def test_boxes_beside_each_other_are_as_high_as_the_highest() -> None:
    assert texts(row((_box("One", "a"), _box("Two", "b", "too long")), 21)) == [
        "╭ One ──╮   ╭ Two ──╮",
        "│ a     │──▸│ b     │",
        "│       │   │ too … │",
        "╰───────╯   ╰───────╯",
    ]


def test_boxes_below_each_other() -> None:
    assert texts(column((_box("Hub", "a", "b"), _box("Host", "c")), 20)) == [
        "Hub   a",
        "      b",
        " ▾",
        "Host  c",
    ]


def test_what_is_left_over_is_shared_by_weight() -> None:
    boxes = (_box("a", least=10, weight=1), _box("b", least=10, weight=3))
    assert share(boxes, 28) == [12, 16]
    assert share(boxes, 15) == [10, 10]


@given(st.integers(12, 60), st.text(max_size=30), st.text(max_size=80))
def test_a_box_has_exactly_its_width(width: int, title: str, line: str) -> None:
    for drawn in frame(_box(title.replace("\n", ""), line), width, 2)[1:]:
        assert line_width(drawn) == width
