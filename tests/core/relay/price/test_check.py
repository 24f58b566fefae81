"""The payer's check: an honest ticket passes, and each lie is found by its rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.price.advertised import Advertised, LongContext, Rates
from relaydesk.core.relay.price.charge import base_max, with_fee
from relaydesk.core.relay.price.check import PricePolicy, Violation, check_price

FEE = 1000
ADVERTISED = Advertised(
    Rates(2_000_000, 4_000_000, 500_000),
    LongContext(200_000, 4_000_000, 8_000_000, 1_000_000),
    min_charge_tokens=1000,
    min_charge_micro=100,
)


@dataclass(frozen=True)
class Ticket:
    input_count: int = 1000
    max_output_count: int = 500
    input_rate: int = 2_000_000
    output_rate: int = 4_000_000
    cache_read_rate: int = 500_000
    min_price: int = 4000
    max_price: int = 4400
    output_usage_type: int = 1


def priced(**changes: int) -> Ticket:
    """A ticket that follows from its own numbers, whatever they are."""
    ticket = replace(Ticket(), **changes)
    base = base_max(
        ticket.input_count,
        ticket.max_output_count,
        ticket.input_rate,
        ticket.output_rate,
        min_price=ticket.min_price,
    )
    return replace(ticket, max_price=with_fee(base, FEE))


def check(ticket: Ticket, advertised: Advertised | None = ADVERTISED, own: int = 1000) -> Violation | None:
    return check_price(ticket, advertised, fee_bps=FEE, own_count=own)


def broken(ticket: Ticket, advertised: Advertised | None = ADVERTISED, own: int = 1000) -> tuple[str, str]:
    found = check(ticket, advertised, own)
    assert found is not None
    assert found.field in found.sentence
    return found.rule, found.field


def test_an_honest_ticket_passes() -> None:
    assert check(Ticket()) is None
    assert (
        check(priced(input_count=200_000, input_rate=4_000_000, output_rate=8_000_000), own=200_000) is None
    )
    assert check(priced(input_rate=0, output_rate=0, cache_read_rate=0, min_price=0)) is None


@pytest.mark.parametrize(
    ("changes", "rule", "field"),
    [
        ({"cache_read_rate": 2_000_001}, "cache_read_discount", "cache_read_rate"),
        ({"input_rate": 4_000_001}, "rate_bound", "input_rate"),
        ({"output_rate": 8_000_001}, "rate_bound", "output_rate"),
        ({"cache_read_rate": 1_000_001}, "cache_read_bound", "cache_read_rate"),
        ({"min_price": 8001}, "min_charge_bound", "min_price"),
        ({"input_count": 1101}, "input_count_bound", "input_count"),
        ({"input_count": 200_000}, "long_context_tier", "input_count"),
    ],
)
def test_each_lie_has_its_rule(changes: dict[str, int], rule: str, field: str) -> None:
    assert broken(priced(**changes)) == (rule, field)


def test_free_cached_reads_stay_free() -> None:
    free = Advertised(Rates(2_000_000, 4_000_000, 0))
    assert broken(priced(cache_read_rate=1), free) == ("cache_read_bound", "cache_read_rate")
    assert check(priced(cache_read_rate=0), free) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"input_rate": 4_000_000},
        {"output_rate": 8_000_000},
        {"cache_read_rate": 1_000_000},
        {"min_price": 8000},
        {"input_count": 1100},
    ],
)
def test_what_is_just_within_passes(changes: dict[str, int]) -> None:
    assert check(priced(**changes)) is None


@pytest.mark.parametrize("off", [-1, 1, 10**6])
def test_the_price_must_follow_from_the_ticket(off: int) -> None:
    assert broken(replace(Ticket(), max_price=4400 + off)) == ("max_price", "max_price")


def test_a_budget_is_part_of_the_price() -> None:
    ticket = replace(Ticket(), max_price=with_fee(4000 + 50, FEE))
    assert check_price(ticket, ADVERTISED, fee_bps=FEE, own_count=1000, extra=50) is None
    assert check_price(ticket, ADVERTISED, fee_bps=FEE, own_count=1000) is not None


def test_a_price_that_no_ticket_holds_is_wrong() -> None:
    huge = replace(Ticket(), input_count=2**62, input_rate=2**40, cache_read_rate=0, max_price=2**63 - 1)
    assert broken(huge, None, own=0)[0] == "max_price"


@pytest.mark.parametrize(
    ("tier", "field"),
    [
        (LongContext(200_000, 1_999_999, 8_000_000), "long_context_input_rate"),
        (LongContext(200_000, 4_000_000, 3_999_999), "long_context_output_rate"),
    ],
)
def test_a_tier_that_is_cheaper_spoils_every_ticket(tier: LongContext, field: str) -> None:
    assert broken(Ticket(), replace(ADVERTISED, long=tier)) == ("long_context_ordering", field)


def test_the_tier_decides_the_references() -> None:
    dear = {"input_count": 200_000, "input_rate": 8_000_000, "output_rate": 16_000_000, "min_price": 0}
    assert check(priced(**dear), own=200_000) is None
    assert broken(priced(**{**dear, "input_rate": 8_000_001}), own=200_000) == ("rate_bound", "input_rate")
    # No discount said for the tier: only the rule that it is one is left.
    no_discount = replace(ADVERTISED, long=LongContext(200_000, 4_000_000, 8_000_000))
    assert check(priced(**dear, cache_read_rate=8_000_000), no_discount, own=200_000) is None


def test_what_there_is_nothing_to_hold_against_passes() -> None:
    assert check(priced(input_rate=10**9, min_price=10**9), None) is None
    assert check(priced(input_count=10**6), Advertised(ADVERTISED.base), own=0) is None
    free_floor = Advertised(Rates(2_000_000, 4_000_000))
    assert check(priced(min_price=10**9, cache_read_rate=2_000_000), free_floor) is None
    for kind in (2, 3, 4):
        assert check(replace(Ticket(), max_price=1, output_usage_type=kind)) is None


def test_a_policy_may_be_stricter_but_never_below_what_is_advertised() -> None:
    strict = PricePolicy(rate_percent=100, count_percent=0)
    ticket = Ticket()
    assert check_price(ticket, ADVERTISED, fee_bps=FEE, own_count=1000, policy=strict) is None
    for changes in ({"input_rate": 2_000_001}, {"input_count": 1001}):
        found = check_price(priced(**changes), ADVERTISED, fee_bps=FEE, own_count=1000, policy=strict)
        assert found is not None and found.signed == found.allowed + 1


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**6),
)
def test_what_is_priced_as_advertised_passes(
    count: int, output: int, rate: int, output_rate: int, least: int
) -> None:
    advertised = Advertised(Rates(rate, output_rate), min_charge_micro=least)
    ticket = priced(
        input_count=count,
        max_output_count=output,
        input_rate=rate,
        output_rate=output_rate,
        cache_read_rate=rate,
        min_price=least,
    )
    assert check(ticket, advertised, own=count) is None
    assert check(replace(ticket, max_price=ticket.max_price + 1), advertised, own=count) is not None
