"""The arithmetic of the bench. Nothing here measures anything."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.stats import differences, percentile, ratios, spread

numbers = st.floats(-1e9, 1e9, allow_nan=False)


def test_a_spread_keeps_the_middle_and_both_ends() -> None:
    found = spread([5.0, 1.0, 9.0, 2.0])
    assert (found.least, found.median, found.greatest, found.count) == (1.0, 3.5, 9.0, 4)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_no_spread_of_nothing_or_of_no_numbers(values: list[float]) -> None:
    with pytest.raises(ValueError, match="measure"):
        spread(values)


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.5) == 50.0
    assert percentile(values, 0.99) == 99.0
    assert percentile(values, 1.0) == 100.0
    assert percentile([7.0], 0.01) == 7.0
    assert percentile([1.0, 2.0], 0.51) == 2.0


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        percentile([1.0], share)


def test_pairs_are_compared_one_by_one_not_as_medians() -> None:
    # Both halves of each pair slow down together: the ratio does not move, the medians do.
    assert ratios([100.0, 50.0, 10.0], [98.0, 49.0, 9.8]) == pytest.approx([0.98, 0.98, 0.98])
    assert differences([1.0, 5.0], [1.5, 5.25]) == [0.5, 0.25]


@pytest.mark.parametrize("compare", [ratios, differences])
def test_a_measurement_without_its_baseline_is_refused(compare: object) -> None:
    with pytest.raises(ValueError, match="baseline"):
        compare([1.0], [1.0, 2.0])  # type: ignore[operator]


@settings(max_examples=200, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=50), st.floats(0.001, 1.0))
def test_a_percentile_covers_its_share_and_no_smaller_value_does(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6
    assert sum(value < found for value in values) < share * len(values)


@settings(max_examples=200, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=50))
def test_a_spread_is_ordered(values: list[float]) -> None:
    found = spread(values)
    assert found.least <= found.median <= found.greatest
    assert found.median == statistics.median(values)
