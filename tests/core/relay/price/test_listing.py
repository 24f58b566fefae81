"""Prices as `/v1/models` lists them."""

from __future__ import annotations

from decimal import Decimal

from relaydesk.core.relay.price.listing import listed_pricing

HALF, TWO, NONE = Decimal("0.5"), Decimal(2), Decimal(0)


def test_prices_for_one_token() -> None:
    assert listed_pricing(HALF, TWO) == {"prompt": "0.0000005", "completion": "0.000002"}
    assert listed_pricing(NONE, NONE) == {"prompt": "0", "completion": "0"}


def test_cached_input_is_listed_where_it_is_cheaper() -> None:
    cheaper = listed_pricing(HALF, TWO, Decimal("0.05"))
    free = listed_pricing(HALF, TWO, NONE)
    assert cheaper is not None and cheaper["input_cache_read"] == "0.00000005"
    assert free is not None and free["input_cache_read"] == "0"
    for cached in (None, HALF, TWO):
        listed = listed_pricing(HALF, TWO, cached)
        assert listed is not None and "input_cache_read" not in listed


def test_no_prices_that_mislead() -> None:
    assert listed_pricing(HALF, TWO, image_route=True) is None
    assert listed_pricing(NONE, NONE, other_costs=True) is None
    assert listed_pricing(NONE, TWO, other_costs=True) is not None
