"""Documents as lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.markdown import lines
from relaydesk.surfaces.console.pieces import Piece
from tests.support.tree import SOURCE


def _text(text: str, width: int) -> list[str]:
    return ["".join(piece.text for piece in line) for line in lines(text, width)]


def test_blocks() -> None:
    page = (
        "# Title\n\nOne two\nthree `code four`, **five**.\n\n"
        "* first item\n  goes on\n  * inner\n1. number\n\n"
        "| a | b |\n|---|:-:|\n| `long` | x |\n\n```\nas  it is\n```\n"
    )
    assert _text(page, 14) == [
        "Title", "", "One two three", "code four,", "five.", "",
        "• first item", "  goes on", "  • inner", "1. number", "",
        "a     b  ", "long  x  ", "", "  as  it is",
    ]  # fmt: skip


def test_tones_and_what_stands_together() -> None:
    (line,) = lines("press `f`, or see [the page](x.md)", 60)
    assert Piece("f", "accent") in line
    assert "".join(piece.text for piece in line) == "press f, or see the page"
    (line,) = lines("not *so fast*: 2 * 3 * 4 is 2*3*4, **and** *x*", 60)
    assert "".join(piece.text for piece in line) == "not so fast: 2 * 3 * 4 is 2*3*4, and x"
    assert [piece.text for piece in line if piece.tone == "strong"] == ["so", "fast", "and", "x"]


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab *`#|-\n[]()1.日"), max_size=120), st.integers(8, 40))
def test_anything_is_lines_and_words_are_kept(text: str, width: int) -> None:
    shown = "".join(_text(text, width))
    assert shown.count("a") + shown.count("b") <= text.count("a") + text.count("b")
    if not set(text) & set("[]()"):
        assert shown.count("a") == text.count("a")


@pytest.mark.parametrize("page", sorted((SOURCE / "surfaces/console/panes").glob("*/help.md")), ids=str)
def test_no_line_of_a_help_page_is_wider_than_the_smallest_terminal(page: object) -> None:
    text = page.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    for line in lines(text, 50):
        assert sum(piece.width for piece in line) <= 50
