"""What a node says a model costs (wire §5.1): advisory, and what a ticket is held against."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from relaydesk.core.relay.price.rate import micro_rate


@dataclass(frozen=True, slots=True)
class Rates:
    """MicroUSDC per 1,000,000 tokens. ``cache_read`` None: cached input costs as other input does."""

    input: int
    output: int
    cache_read: int | None = None

    @property
    def cached(self) -> int:
        """What cached input costs, discounted or not: a ticket's ``cache_read_rate``."""
        return self.input if self.cache_read is None else min(self.cache_read, self.input)


@dataclass(frozen=True, slots=True)
class LongContext:
    """The dearer rates of a request whose input is ``threshold`` tokens or more; None: as below it."""

    threshold: int
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None


@dataclass(frozen=True, slots=True)
class Advertised:
    """One model's prices, in whole microUSDC.

    The two minimum charges are the node's, not the model's; 0 and 0 is none said.
    """

    base: Rates
    long: LongContext | None = None
    min_charge_tokens: int = 0
    min_charge_micro: int = 0

    def is_long(self, input_count: int) -> bool:
        """Whether a request with so many tokens reserved pays the dearer rates, all of it."""
        return self.long is not None and 0 < self.long.threshold <= input_count

    def rates(self, input_count: int) -> Rates:
        """The rates of a request, by the tokens that are reserved for its input."""
        if self.long is None or not self.is_long(input_count):
            return self.base
        dear = self.long
        return Rates(
            self.base.input if dear.input is None else dear.input,
            self.base.output if dear.output is None else dear.output,
            dear.cache_read,
        )


def rates_of(input_usd: Decimal, output_usd: Decimal, cache_read_usd: Decimal | None = None) -> Rates:
    """Rates of prices in USD per 1,000,000 tokens, as `parse_usd` gives them."""
    cached = None if cache_read_usd is None else micro_rate(cache_read_usd)
    return Rates(micro_rate(input_usd), micro_rate(output_usd), cached)
