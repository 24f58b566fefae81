"""Which rates a request pays."""

from __future__ import annotations

from decimal import Decimal

import pytest

from relaydesk.core.relay.price.advertised import Advertised, LongContext, Rates, rates_of

BASE = Rates(10, 20, 5)
TIERED = Advertised(BASE, LongContext(200, 30, 40, 7))


@pytest.mark.parametrize(("count", "dear"), [(0, False), (199, False), (200, True), (201, True)])
def test_the_whole_request_pays_the_dearer_rates(count: int, dear: bool) -> None:
    assert TIERED.is_long(count) is dear
    assert TIERED.rates(count) == (Rates(30, 40, 7) if dear else BASE)


def test_no_tier_and_half_a_tier() -> None:
    assert Advertised(BASE).rates(10**9) == BASE
    assert Advertised(BASE, LongContext(0, 30, 40)).rates(10**9) == BASE
    # Cached input has no discount in the tier unless it says one.
    assert Advertised(BASE, LongContext(1)).rates(5) == Rates(10, 20, None)


def test_what_cached_input_costs() -> None:
    assert Rates(10, 20).cached == 10
    assert Rates(10, 20, 0).cached == 0
    assert Rates(10, 20, 11).cached == 10
    assert rates_of(Decimal("0.1"), Decimal(2), Decimal(0)) == Rates(100_000, 2_000_000, 0)
    assert rates_of(Decimal(0), Decimal(0)) == Rates(0, 0)
