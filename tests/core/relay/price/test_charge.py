"""What a request may and does cost: figures by hand, and by Fraction."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.price.charge import MAX_MICRO, base_max, charge, leg, min_price, net_fee, with_fee

TOKENS = st.integers(0, 10**7)
RATES = st.integers(0, 10**10)


def test_a_reserve_rounds_each_side_up() -> None:
    assert base_max(1, 1, 1, 1, min_price=0) == 2
    assert base_max(1000, 500, 2_000_000, 4_000_000, min_price=0) == 4000
    assert base_max(1000, 500, 2_000_000, 4_000_000, min_price=0, extra=10_000) == 14_000
    assert base_max(1, 1, 2_000_000, 4_000_000, min_price=5000) == 5000
    assert base_max(0, 0, 9, 9, min_price=0) == 0


@pytest.mark.parametrize(
    ("base", "bps", "locked"), [(4000, 0, 4000), (4000, 100, 4040), (2, 250, 3), (0, 1000, 0), (1, 2000, 2)]
)
def test_the_fee_comes_on_top_rounded_up(base: int, bps: int, locked: int) -> None:
    assert with_fee(base, bps) == locked
    assert net_fee(base, bps) == base * bps // 10_000


def test_what_no_ticket_holds_is_an_overflow() -> None:
    with pytest.raises(OverflowError):
        base_max(2**62, 0, 2**30, 0, min_price=0)
    with pytest.raises(OverflowError):
        with_fee(MAX_MICRO, 1)
    assert with_fee(MAX_MICRO, 0) == MAX_MICRO


def test_the_least_price() -> None:
    assert min_price(1000, 4_000_000) == 4000
    assert min_price(100, 4_000_000, transactions=8, algo_usd=Decimal("0.25")) == 2000
    assert min_price(100, 4_000_000, transactions=8, algo_usd=Decimal(-1)) == 400
    assert min_price(0, 0, transactions=1, algo_usd=Decimal("0.0001")) == 1
    assert min_price(1000, 0) == 0


@pytest.mark.parametrize(
    ("used", "cached", "output", "least", "most", "expected"),
    [
        (0, 0, 0, 1000, 100_000, 0),
        (0, 9, 0, 1000, 100_000, 0),
        (1000, 0, 500, 1000, 100_000, 4000),
        (1, 0, 1, 5000, 100_000, 5000),
        (1_000_000, 0, 1_000_000, 0, 100, 100),
        (1000, 800, 0, 0, 10_000, 800),
        (100, 500, 0, 0, 10_000, 50),
        (1, 0, 1, 5000, 100, 100),
    ],
)
def test_a_charge(used: int, cached: int, output: int, least: int, most: int, expected: int) -> None:
    amount = charge(
        used,
        output,
        cached=cached,
        input_rate=2_000_000,
        output_rate=4_000_000,
        cache_read_rate=500_000,
        min_price=least,
        base_max=most,
    )
    assert amount == expected


def test_a_charge_rounds_all_input_up_together() -> None:
    rates = {"input_rate": 1, "output_rate": 0, "cache_read_rate": 1, "min_price": 0, "base_max": 99}
    assert charge(1_000_000, 0, cached=999_999, **rates) == 1


@given(TOKENS, TOKENS, TOKENS, RATES, RATES, RATES)
def test_no_charge_is_beyond_its_reserve(
    used: int, cached: int, output: int, rate: int, output_rate: int, discount: int
) -> None:
    most = base_max(used, output, rate, output_rate, min_price=0)
    amount = charge(
        used,
        output,
        cached=cached,
        input_rate=rate,
        output_rate=output_rate,
        cache_read_rate=min(discount, rate),
        min_price=0,
        base_max=10**18,
    )
    assert amount <= most
    assert leg(used, rate) == ceil(Fraction(used * rate, 1_000_000))
