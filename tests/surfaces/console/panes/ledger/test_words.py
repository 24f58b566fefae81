"""Amounts and moments of the books."""

from __future__ import annotations

import pytest

from relaydesk.surfaces.console.panes.ledger.words import amount, day, left


def test_amounts_are_whole_and_an_unsaid_one_is_no_zero() -> None:
    assert [amount(value) for value in (0, 999, 1_250_000, 10**15, None)] == [
        "0",
        "999",
        "1,250,000",
        "1,000,000,000,000,000",
        "–",
    ]


@pytest.mark.parametrize(
    ("rest_ms", "said"),
    [(582_000, "9:42"), (59_999, "0:59"), (3_599_000, "59:59"), (7_300_000, "2 h"), (0, "due"), (-5, "due")],
)
def test_deadlines_count_down(rest_ms: int, said: str) -> None:
    assert left(1_000_000 + rest_ms, 1_000_000) == said


def test_days() -> None:
    assert day(20_526) == "2026-03-14"
    assert day(10**12) == "1000000000000"
