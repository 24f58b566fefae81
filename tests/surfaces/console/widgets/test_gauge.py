from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.widgets.gauge import gauge
from relaydesk.surfaces.console.widgets.spans import line_text, line_width


@pytest.mark.parametrize(
    ("share", "width", "shown", "ascii"),
    [
        (0.5, 13, "████░░░░  50%", "####----  50%"),
        (0.0, 13, "░░░░░░░░   0%", "--------   0%"),
        (1.0, 13, "████████ 100%", "######## 100%"),
        (0.999, 13, "███████▉  99%", "#######-  99%"),
        (0.01, 9, "░░░░░░░░░", "---------"),
        (0.02, 9, "▏░░░░░░░░", "---------"),
        (None, 13, "░" * 13, "-" * 13),
        (float("nan"), 4, "░░░░", "----"),
        (7, 4, "████", "####"),
        (-1, 4, "░░░░", "----"),
        (0.5, 0, "", ""),
    ],
)
def test_gauges(share: float | None, width: int, shown: str, ascii: str) -> None:
    assert line_text(gauge(share, width)) == shown
    assert line_text(gauge(share, width, ascii=True)) == ascii


@given(st.none() | st.floats(), st.integers(0, 60), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_gauge_has_its_width_and_is_full_only_when_done(
    share: float | None, width: int, ascii: bool
) -> None:
    line = gauge(share, width, ascii=ascii)
    text = line_text(line)
    assert line_width(line) == width
    assert text.isascii() or not ascii
    if share is None or not share >= 1:
        assert "100%" not in text
