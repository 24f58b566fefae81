"""Twins are ASCII and as wide as what they stand for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from relaydesk.core.text import safe_text
from relaydesk.surfaces.console.ascii import AsciiFilter, to_ascii
from relaydesk.surfaces.console.pieces import MARKS


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_whatever_comes(text: str) -> None:
    shown = to_ascii(safe_text(text))
    assert shown.isascii()
    assert cell_len(shown) == cell_len(safe_text(text))


def test_states_keep_apart() -> None:
    twins = [to_ascii(symbol) for symbol in MARKS.values()]
    assert len(set(twins)) == len(twins)
    assert "?" not in twins


def test_the_filter_keeps_styles() -> None:
    style = Style(bold=True)
    line = [Segment("● up", style), Segment(" plain"), Segment("│")]
    assert AsciiFilter().apply(line, Color(0, 0, 0)) == [
        Segment("* up", style),
        Segment(" plain"),
        Segment("|"),
    ]
