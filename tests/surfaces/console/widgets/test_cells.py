from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from relaydesk.surfaces.console.widgets.cells import MAX_MARKS, clean, fit, head, width, wrap

# Letters, wide characters, marks, emoji and what must never be drawn.
TEXT = st.text(
    st.sampled_from("ab 漢字ｗ한e\u0301\u0300\u0345🙂👩\u200d\ufe0f\x1b\x07\u202e\u2066\n\t\u2028é─█⣿[]/@")
    | st.characters(),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "cells", "align", "shown"),
    [
        ("abc", 5, "left", "abc  "),
        ("abc", 5, "right", "  abc"),
        ("abcdef", 4, "left", "abc…"),
        ("abcdef", 6, "left", "abcdef"),
        ("abc", 1, "left", "…"),
        ("abc", 0, "left", ""),
        ("", 2, "left", "  "),
        ("漢字", 4, "left", "漢字"),
        ("漢字漢", 5, "left", "漢字…"),
        ("漢字漢", 4, "left", "漢… "),
        ("漢字", 3, "right", "漢…"),
        ("e\u0301e\u0301e", 2, "left", "e\u0301…"),
        ("e\u0301", 2, "left", "e\u0301 "),
        ("\u0301a", 2, "left", "a "),
        ("a\ufe0fb", 2, "left", "ab"),
        ("a\x1b[31mb", 8, "left", "a[31mb  "),
        ("a\u202eb", 3, "left", "ab "),
        ("a\nb", 3, "left", "a b"),
    ],
)
def test_text_fits_its_cells(text: str, cells: int, align: str, shown: str) -> None:
    assert fit(text, cells, align) == shown  # type: ignore[arg-type]


@given(TEXT, st.integers(0, 30), st.sampled_from(["left", "right"]))
@settings(max_examples=200, deadline=None)
def test_a_cell_is_exactly_filled(text: str, cells: int, align: str) -> None:
    shown = fit(text, cells, align)  # type: ignore[arg-type]
    assert cell_len(shown) == width(shown) == cells
    assert shown.isprintable()
    # Every character is one of the text's, or ours.
    assert not set(shown) - set(text) - set(" …")


@given(TEXT, st.integers(0, 30))
@settings(max_examples=200, deadline=None)
def test_a_head_is_a_beginning_and_no_longer_than_asked(text: str, cells: int) -> None:
    text = clean(text)
    piece = head(text, cells)
    assert text.startswith(piece)
    assert cell_len(piece) <= cells
    rest = text[len(piece) :]
    assert not rest or cell_len(piece + rest[0]) > cells


@given(TEXT, st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_wrapped_lines_fit_and_lose_no_word(text: str, cells: int) -> None:
    lines = wrap(text, cells)
    assert all(0 < cell_len(line) <= cells for line in lines)
    if cells >= 2:
        assert "".join("".join(lines).split()) == "".join(clean(text).split())


def test_wrapping_breaks_at_spaces() -> None:
    assert wrap("No model yet: press a to add one", 14) == ("No model yet:", "press a to add", "one")
    assert wrap("aaaaaaa bb", 3) == ("aaa", "aaa", "a", "bb")
    assert wrap("漢字漢", 4) == ("漢字", "漢")
    assert wrap("漢", 1) == ()
    assert wrap("", 5) == ()


def test_marks_do_not_pile_up() -> None:
    shown = clean("Z" + "\u0301" * 500 + "y")
    assert shown == "Z" + "\u0301" * MAX_MARKS + "y"


def test_long_text_costs_little() -> None:
    assert fit("漢" * 10_000, 10) == "漢漢漢漢… "
    assert fit("a" * 1_000_000, 4) == "aaa…"
