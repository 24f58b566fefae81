"""Pieces: what fits a line, and what a click hits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from textual.content import Content

from relaydesk.surfaces.console.pieces import (
    Group,
    Piece,
    action_at,
    content,
    cut,
    fit,
    mark,
    shorten,
    spread,
)

PIECES = st.lists(
    st.builds(Piece, st.text(st.characters(codec="ascii", categories=["L"]) | st.just("日"))), max_size=6
)
GROUPS = st.lists(st.builds(Group, PIECES.map(tuple), st.integers(0, 5)), max_size=6)


def _width(pieces: object) -> int:
    return sum(piece.width for piece in pieces)  # type: ignore[attr-defined]


@settings(max_examples=100, deadline=None)
@given(GROUPS, st.integers(0, 40))
def test_a_line_is_never_too_long(groups: list[Group], width: int) -> None:
    assert _width(fit(groups, width)) <= width


def test_the_least_important_goes_first_and_the_last_of_equals() -> None:
    groups = [Group((Piece(name),), priority) for name, priority in (("aaaa", 1), ("bbbb", 2), ("cccc", 2))]
    shown = ["".join(piece.text for piece in fit(groups, width)) for width in (16, 15, 9, 4, 3)]
    assert shown == ["aaaa  bbbb  cccc", "bbbb  cccc", "bbbb", "bbbb", "bb…"]


@settings(max_examples=100, deadline=None)
@given(PIECES, PIECES, st.integers(0, 60))
def test_spread_fills_the_line_or_gives_up_its_right_end(
    left: list[Piece], right: list[Piece], width: int
) -> None:
    line = spread(left, right, width)
    assert _width(line) <= width
    if _width(left) + _width(right) < width:
        assert _width(line) == width
        assert [*line[: len(left)], *line[len(left) + 1 :]] == [*left, *right]


def test_cuts_show() -> None:
    assert cut([Piece("abc"), Piece("def", "warn", "x")], 5) == (Piece("abc"), Piece("d…", "warn", "x"))
    assert shorten("日本語", 4) == "日…" or shorten("日本語", 4) == "日… "
    assert shorten("abc", 3) == "abc"


def test_clicks() -> None:
    line = (Piece("日本", do="one"), Piece("  "), Piece("x", do="two"))
    assert [action_at(line, column) for column in range(8)] == ["one"] * 4 + ["", "", "two", ""]


def test_no_markup_is_read() -> None:
    text = "[@click=app.quit]x[/] [/oops]"
    made = content((Piece(text, "warn"), mark("ok", "up")))
    assert isinstance(made, Content)
    assert made.plain == text + "● up"
    assert not any("@click" in str(span.style) for span in made.spans)
