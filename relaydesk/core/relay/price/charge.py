"""What a request may cost at most, and what it does cost (wire §4.3, §4.8). Whole microUSDC throughout.

The two roundings differ on purpose: a reserve rounds its input and its output up separately, a charge rounds
cached and other input up together.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from relaydesk.core.relay.price.rate import MICRO

# What any of these numbers may be: they are unsigned 64-bit on the wire and signed in the ledger's database.
MAX_MICRO: Final = 2**63 - 1
FEE_PARTS: Final = 10_000
_MICROALGOS_A_TRANSACTION: Final = 1000


def leg(tokens: int, rate: int) -> int:
    """The price of ``tokens`` at a rate per million, rounded up."""
    return -(-tokens * rate // MICRO)


def min_price(
    min_tokens: int, output_rate: int, *, transactions: int = 0, algo_usd: Decimal = Decimal(0)
) -> int:
    """The least a paid request costs: so many tokens at the output rate, or its transactions' fees.

    Without a chain ``transactions`` is 0 and the tokens alone count.
    """
    numerator, denominator = algo_usd.as_integer_ratio()
    fees = -(-transactions * _MICROALGOS_A_TRANSACTION * max(numerator, 0) // denominator)
    return max(leg(min_tokens, output_rate), fees)


def base_max(
    input_count: int,
    max_output_count: int,
    input_rate: int,
    output_rate: int,
    *,
    min_price: int,
    extra: int = 0,
) -> int:
    """What the operator gets at most. ``extra`` is what tools or images may add.

    Raises `OverflowError` where the wire's numbers cannot hold it (400 ``price_overflow``).
    """
    most = max(leg(input_count, input_rate) + leg(max_output_count, output_rate) + extra, min_price)
    return _held(most)


def with_fee(base: int, fee_bps: int) -> int:
    """What a payer locks for ``base``: the fee comes on top, rounded up. Raises `OverflowError`."""
    return _held(base + -(-base * fee_bps // FEE_PARTS))


def net_fee(amount: int, fee_bps: int) -> int:
    """The protocol's fee on a settled ``amount``, rounded down (wire §4.9)."""
    return amount * fee_bps // FEE_PARTS


def charge(
    input_count: int,
    output_count: int,
    *,
    cached: int = 0,
    input_rate: int,
    output_rate: int,
    cache_read_rate: int,
    min_price: int,
    base_max: int,
) -> int:
    """What was used, at least ``min_price``, at most ``base_max``; nothing used costs nothing.

    ``cached`` is the part of the input that was read from a cache; more than the input is all of it.
    """
    if not input_count and not output_count:
        return 0
    cached = min(cached, input_count)
    together = (input_count - cached) * input_rate + cached * cache_read_rate
    used = -(-together // MICRO) + leg(output_count, output_rate)
    return min(max(used, min_price), base_max)


def _held(amount: int) -> int:
    if amount > MAX_MICRO:
        raise OverflowError("the price is beyond what a ticket can hold")
    return amount
