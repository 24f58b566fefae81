"""The count of a reserve and the output that is assumed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.bound.reserve_count import derive_max_output, reserve_input_count, tool_growth

COUNTS = st.integers(0, 2**40)


@pytest.mark.parametrize(
    ("bound", "growth", "output", "window", "floor", "expected"),
    [
        (500, 0, 100, 0, 0, 500),
        (500, 4000, 100, 0, 0, 4500),
        (10, 5, 100, 0, 256, 256),
        (500, 0, 600, 1000, 0, 400),
        (10, 0, 900, 1000, 256, 100),
        (10, 0, 1000, 1000, 256, 0),
        (10, 0, 2000, 1000, 256, 0),
    ],
)
def test_the_window_has_the_last_word(
    bound: int, growth: int, output: int, window: int, floor: int, expected: int
) -> None:
    count = reserve_input_count(bound, growth=growth, max_output=output, context_window=window, floor=floor)
    assert count == expected


def test_tools_grow_it_by_rounds() -> None:
    assert tool_growth(grows=True, rounds=20) == 80_000
    assert tool_growth(grows=True, rounds=3, headroom=7) == 21
    assert tool_growth(grows=False, rounds=20) == 0


@given(COUNTS, COUNTS, COUNTS, st.integers(1, 2**40), COUNTS)
def test_what_is_reserved_fits(bound: int, growth: int, output: int, window: int, floor: int) -> None:
    count = reserve_input_count(bound, growth=growth, max_output=output, context_window=window, floor=floor)
    assert count == 0 or count + output <= window


@pytest.mark.parametrize(
    ("window", "declared", "expected"),
    [(0, 0, 32_768), (0, 77, 77), (100, 99_999, 99_999), (100, 0, 256), (4003, 0, 1000), (10**9, 0, 32_768)],
)
def test_the_output_that_is_assumed(window: int, declared: int, expected: int) -> None:
    assert derive_max_output(window, declared) == expected


def test_a_ceiling_below_the_least_wins() -> None:
    assert derive_max_output(8, 0, 100) == 100
