"""The payer's look at a ticket's price before anything is paid (wire §4.3).

Nothing is taken on trust: the ticket must follow from its own numbers, and its numbers from what was
advertised and what the payer measured, within a tolerance. What there is nothing to hold against is passed
over: an honest request must not fail for want of catalogue data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from relaydesk.core.relay.price.advertised import Advertised
from relaydesk.core.relay.price.charge import base_max, leg, with_fee

PriceRule = Literal[
    "cache_read_discount",
    "max_price",
    "long_context_ordering",
    "long_context_tier",
    "rate_bound",
    "cache_read_bound",
    "min_charge_bound",
    "input_count_bound",
]
# Output usage types that are not priced by tokens: images, characters, seconds (wire §4.3).
_NOT_BY_TOKENS: Final = frozenset({2, 3, 4})


class PricedTicket(Protocol):
    """The numbers of a ticket that its price is made of."""

    @property
    def input_count(self) -> int: ...
    @property
    def max_output_count(self) -> int: ...
    @property
    def input_rate(self) -> int: ...
    @property
    def output_rate(self) -> int: ...
    @property
    def cache_read_rate(self) -> int: ...
    @property
    def max_price(self) -> int: ...
    @property
    def min_price(self) -> int: ...
    @property
    def output_usage_type(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PricePolicy:
    """How far a ticket may be from its references.

    ``rate_percent`` of an advertised rate or minimum is allowed, and ``count_percent`` of the payer's own
    input count. The figures are the wire's: 2.0 and 1.10.
    """

    rate_percent: int = 200
    count_percent: int = 110


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a ticket breaks.

    ``allowed`` is the most, or for ``max_price`` the exact value, ``signed`` what the ticket has; both are 0
    for ``long_context_ordering``, which is about the advertisement.
    """

    rule: PriceRule
    field: str
    allowed: int
    signed: int

    @property
    def sentence(self) -> str:
        """What is wrong, for people."""
        if self.rule == "long_context_ordering":
            return f"the advertised {self.field} is below the one for shorter requests"
        return f"{self.field} is {self.signed}, allowed is {self.allowed} ({self.rule})"


DEFAULT_POLICY: Final = PricePolicy()


def check_price(
    ticket: PricedTicket,
    advertised: Advertised | None,
    *,
    fee_bps: int,
    own_count: int,
    extra: int = 0,
    policy: PricePolicy = DEFAULT_POLICY,
) -> Violation | None:
    """The first rule that ``ticket`` breaks, or None where it may be paid.

    ``advertised`` is None where the node told no prices; ``own_count`` is what this payer reserved, 0 where
    it measured nothing; ``extra`` is what it budgeted for tools or images. Tickets that are not priced by
    tokens are not judged.
    """
    if ticket.output_usage_type in _NOT_BY_TOKENS:
        return None
    return next(_violations(ticket, advertised, fee_bps, own_count, extra, policy), None)


def _violations(
    ticket: PricedTicket,
    advertised: Advertised | None,
    fee_bps: int,
    own_count: int,
    extra: int,
    policy: PricePolicy,
) -> Iterator[Violation]:
    yield from _most("cache_read_discount", "cache_read_rate", ticket.input_rate, ticket.cache_read_rate)
    expected = _expected_max(ticket, fee_bps, extra)
    if ticket.max_price != expected:
        yield Violation("max_price", "max_price", expected, ticket.max_price)
    if advertised is not None:
        yield from _tiers(ticket, advertised, own_count)
        yield from _rates(ticket, advertised, policy)
    if own_count:
        allowed = own_count * max(policy.count_percent, 100) // 100
        yield from _most("input_count_bound", "input_count", allowed, ticket.input_count)


def _expected_max(ticket: PricedTicket, fee_bps: int, extra: int) -> int:
    """What the ticket's own numbers come to; -1, which no ticket says, where that is more than one holds."""
    try:
        base = base_max(
            ticket.input_count,
            ticket.max_output_count,
            ticket.input_rate,
            ticket.output_rate,
            min_price=ticket.min_price,
            extra=extra,
        )
        return with_fee(base, fee_bps)
    except OverflowError:
        return -1


def _tiers(ticket: PricedTicket, advertised: Advertised, own_count: int) -> Iterator[Violation]:
    """A dearer tier must be dearer, and a ticket must not reach it by counting more than the payer did.

    The count's own tolerance is no help there: a step of a tenth may double the price of everything.
    """
    dear = advertised.long
    if dear is None or dear.threshold <= 0:
        return
    if dear.input is not None and dear.input < advertised.base.input:
        yield Violation("long_context_ordering", "long_context_input_rate", 0, 0)
    if dear.output is not None and dear.output < advertised.base.output:
        yield Violation("long_context_ordering", "long_context_output_rate", 0, 0)
    if own_count and advertised.is_long(ticket.input_count) and not advertised.is_long(own_count):
        yield Violation("long_context_tier", "input_count", own_count, ticket.input_count)


def _rates(ticket: PricedTicket, advertised: Advertised, policy: PricePolicy) -> Iterator[Violation]:
    rates = advertised.rates(ticket.input_count)
    yield from _most("rate_bound", "input_rate", _scaled(rates.input, policy), ticket.input_rate)
    yield from _most("rate_bound", "output_rate", _scaled(rates.output, policy), ticket.output_rate)
    if rates.cache_read is not None:
        allowed = _scaled(rates.cache_read, policy)
        yield from _most("cache_read_bound", "cache_read_rate", allowed, ticket.cache_read_rate)
    if advertised.min_charge_tokens or advertised.min_charge_micro:
        floor = max(leg(advertised.min_charge_tokens, ticket.output_rate), advertised.min_charge_micro)
        yield from _most("min_charge_bound", "min_price", _scaled(floor, policy), ticket.min_price)


def _most(rule: PriceRule, field: str, allowed: int, signed: int) -> Iterator[Violation]:
    if signed > allowed:
        yield Violation(rule, field, allowed, signed)


def _scaled(value: int, policy: PricePolicy) -> int:
    return -(-value * max(policy.rate_percent, 100) // 100)
