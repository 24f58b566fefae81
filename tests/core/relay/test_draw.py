from __future__ import annotations

import math
import random
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.draw import draw, pick, pick_at, plain_pick, weights

rtts = st.lists(st.none() | st.floats(0, 1e6), min_size=1, max_size=20)
seeds = st.integers(0, 2**64 - 1)


def test_weights_by_hand() -> None:
    # 1/(50+50) = 0.01 and 1/(150+50) = 0.005: two thirds and one third, under a floor of 0.15 / 2.
    assert weights([50.0, 150.0]) == pytest.approx([0.075 + 0.85 * 2 / 3, 0.075 + 0.85 / 3])
    # The unknown one gets the median of 0.01, 0.005 and 0.0025.
    known = [0.01, 0.005, 0.0025, 0.005]
    assert weights([50.0, 150.0, 350.0, None]) == pytest.approx(
        [0.15 / 4 + 0.85 * w / sum(known) for w in known]
    )


def test_without_any_measure_all_are_equal() -> None:
    assert weights([None] * 4) == [0.25] * 4
    assert weights([]) == []
    assert [draw([None] * 3, seed) for seed in range(7)] == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize("rtt", [math.nan, math.inf, -1.0, -50.0, -math.inf])
def test_what_is_no_time_is_no_measure(rtt: float) -> None:
    assert weights([rtt, 100.0]) == weights([None, 100.0])
    assert weights([rtt, rtt]) == [0.5, 0.5]


@given(rtts)
def test_nobody_is_below_the_floor_or_above_the_cap(values: list[float | None]) -> None:
    chances = weights(values)
    count = len(values)
    assert sum(chances) == pytest.approx(1)
    assert all(
        0.15 / count * (1 - 1e-9) <= chance <= (0.85 + 0.15 / count) * (1 + 1e-9) for chance in chances
    )


@given(st.lists(st.floats(0, 1e5), min_size=2, max_size=10))
def test_faster_is_never_less_likely(values: list[float]) -> None:
    pairs = sorted(zip(values, weights(list(values)), strict=True))
    assert all(near[1] >= far[1] - 1e-12 for near, far in pairwise(pairs))


@given(rtts, seeds)
def test_every_seed_draws_one_of_them(values: list[float | None], seed: int) -> None:
    assert 0 <= draw(values, seed) < len(values)
    assert 0 <= pick(weights(values), seed) < len(values)


def test_the_ends_of_the_seeds() -> None:
    assert pick([0.5, 0.5], 0) == 0
    assert pick([0.5, 0.5], 2**63 - 1) == 0
    assert pick([0.5, 0.5], 2**63) == 1
    assert pick([0.5, 0.5], 2**64 - 1) == 1
    assert pick([0.1] * 10, 2**64 - 1) == 9


def test_nothing_to_draw_from() -> None:
    for attempt in (lambda: pick([], 1), lambda: plain_pick(0, 1), lambda: draw([], 1)):
        with pytest.raises(ValueError, match="nothing to draw from"):
            attempt()


def test_a_million_draws_match_the_formula() -> None:
    """Each relay's share lies within five standard deviations of what the formula says."""
    values = [3.0, 40.0, 40.0, 120.0, 900.0, None, 30_000.0]
    softened = [1 / (rtt + 50) for rtt in values if rtt is not None]
    middle = (sorted(softened)[2] + sorted(softened)[3]) / 2
    raw = [middle if rtt is None else 1 / (rtt + 50) for rtt in values]
    wanted = [0.15 / 7 + 0.85 * weight / sum(raw) for weight in raw]
    total = 1_000_000
    # The seeds come from one long number: a million calls for 64 bits each take longer than the draws.
    noise = memoryview(random.Random(7).randbytes(total * 8)).cast("Q")
    sums = list(accumulate(weights(values)))
    counts = [0] * len(values)
    for seed in noise:
        counts[pick_at(sums, seed)] += 1
    for count, chance in zip(counts, wanted, strict=True):
        assert abs(count - total * chance) < 5 * math.sqrt(total * chance * (1 - chance))
    assert min(counts) / total >= 0.15 / 7 * 0.97
