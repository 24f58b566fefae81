from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.control.lines import LineSplitter, LineTooLongError


@given(
    st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=12),
    st.lists(st.integers(1, 7), min_size=1, max_size=20),
)
@settings(max_examples=200, deadline=None)
def test_lines_survive_any_cutting(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes] = []
    position = turn = 0
    while position < len(data):
        size = cuts[turn % len(cuts)]
        found += splitter.feed(data[position : position + size])
        position, turn = position + size, turn + 1
    assert found == [line for line in lines if line]


def test_an_unfinished_line_waits() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"ab") == []
    assert splitter.feed(b"") == []
    assert splitter.feed(b"c\n\nd") == [b"abc"]
    assert splitter.feed(b"\n") == [b"d"]


def test_a_line_without_end_is_refused() -> None:
    splitter = LineSplitter(limit=10)
    assert splitter.feed(b"x" * 10) == []
    with pytest.raises(LineTooLongError):
        splitter.feed(b"x")
