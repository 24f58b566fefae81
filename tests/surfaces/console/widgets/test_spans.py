from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.widgets.spans import Line, Span, fit_line, line_text, line_width, merge

SPANS = st.lists(
    st.builds(
        Span,
        st.text(st.sampled_from("ab 漢字e\u0301\x1b🙂"), max_size=8),
        st.sampled_from(["", "ok", "warn"]),
    ),
    max_size=6,
).map(tuple)


@pytest.mark.parametrize(
    ("line", "cells", "shown"),
    [
        ((Span("ab", "ok"), Span("cd")), 6, (Span("ab", "ok"), Span("cd  "))),
        ((Span("ab", "ok"), Span("cd", "warn")), 4, (Span("ab", "ok"), Span("cd", "warn"))),
        ((Span("ab", "ok"), Span("cd", "warn")), 3, (Span("ab", "ok"), Span("…", "warn"))),
        ((Span("ab", "ok"), Span("cd", "warn")), 2, (Span("a…", "ok"),)),
        ((Span("漢字", "ok"),), 3, (Span("漢…", "ok"),)),
        ((Span("漢字", "ok"), Span("x")), 4, (Span("漢… ", "ok"),)),
        ((), 2, (Span("  "),)),
        ((Span("a"),), 0, ()),
    ],
)
def test_lines_are_cut_and_padded(line: Line, cells: int, shown: Line) -> None:
    assert fit_line(line, cells) == shown


@given(SPANS, st.integers(0, 20))
@settings(max_examples=200, deadline=None)
def test_a_line_is_exactly_as_wide_as_asked(line: Line, cells: int) -> None:
    shown = fit_line(line, cells)
    assert line_width(shown) == cells
    assert line_text(shown).isprintable()
    assert all(span.text for span in shown)


def test_neighbours_of_one_tone_become_one() -> None:
    spans = [Span("a", "ok"), Span("", "warn"), Span("b", "ok"), Span("c")]
    assert merge(spans) == (Span("ab", "ok"), Span("c"))
