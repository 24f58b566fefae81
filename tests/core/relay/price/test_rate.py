"""Rates from decimals as written, with Fraction as the second opinion."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.relay.price.rate import MAX_USD, micro_ceiling, micro_rate, parse_usd, usd_per_token

USD = st.decimals(0, MAX_USD, places=9).map(lambda value: value.normalize())


@pytest.mark.parametrize(
    ("said", "micro"),
    [
        ("0", 0),
        (0, 0),
        ("0.5", 500_000),
        (0.07, 70_000),
        ("1.0000011", 1_000_002),
        (1e-9, 1),
        ("1e-30", 1),
        (" 2.50 ", 2_500_000),
        (1000, 1_000_000_000),
        ("+3", 3_000_000),
        ("-0", 0),
        (10**12, 10**18),
        (0.1 + 0.2, 300_001),
    ],
)
def test_a_rate_is_what_was_written_rounded_up(said: float | str, micro: int) -> None:
    assert micro_rate(parse_usd(said)) == micro


@pytest.mark.parametrize(
    "said",
    [
        "", "x", "-1", -0.1, "NaN", float("nan"), "Infinity", float("inf"), "sNaN", "1_000", "١", "1e13",
        "1e999999999", "1e-999999999", "0." + "1" * 41, "9" * 5000, "1000000000001", "1,5", "0x1", "1 2",
    ],
)  # fmt: skip
def test_what_is_no_price(said: float | str) -> None:
    with pytest.raises(ValueError, match="a price must"):
        parse_usd(said)


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        ("0", "0"), ("0.1", "0.0000001"), ("2.50", "0.0000025"), ("1000000", "1"), ("15", "0.000015"),
        ("1e12", "1000000"), ("1234567.89", "1.23456789"), ("1e-9", "0.000000000000001"), ("1E+3", "0.001"),
    ],
)  # fmt: skip
def test_usd_for_one_token(usd: str, text: str) -> None:
    assert usd_per_token(parse_usd(usd)) == text


@given(USD)
def test_nothing_is_lost_on_the_way(usd: Decimal) -> None:
    exact = Fraction(usd) * 1_000_000
    assert micro_rate(parse_usd(usd)) == ceil(exact)
    assert micro_ceiling(parse_usd(str(usd))) == floor(exact)
    text = usd_per_token(parse_usd(usd))
    assert Fraction(text) * 1_000_000 == Fraction(usd) and "e" not in text.lower()


@pytest.mark.long
@settings(max_examples=10_000)
@given(st.text("0123456789.-+eE_xNa ", max_size=14) | st.text(max_size=9) | st.floats())
def test_ten_thousand_prices(said: float | str) -> None:
    try:
        usd = parse_usd(said)
    except ValueError:
        return
    assert 0 <= micro_rate(usd) <= MAX_USD * 1_000_000
    usd_per_token(usd)
