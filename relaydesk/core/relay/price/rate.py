"""Rates: what a million tokens cost, in USD as people and details write it and in whole microUSDC.

Rule (wire §4.3): a rate is a whole number of microUSDC per 1,000,000 tokens, rounded up. It is made of the
decimal digits as written: no binary fraction comes between, so that 0.07 is 70,000 and not a step more.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

MICRO: Final = 1_000_000
# What is refused as no price: a trillion USD per 1M tokens, and digits nobody can mean.
MAX_USD: Final = 10**12
_MAX_DIGITS: Final = 40
_MAX_PLACES: Final = 30


def parse_usd(value: Decimal | float | str) -> Decimal:
    """USD as a non-negative decimal of sane length, at most `MAX_USD`.

    A float is taken for the shortest decimal that reads as it. Raises `ValueError` with a sentence.
    """
    text = repr(value) if isinstance(value, float) else str(value).strip()
    # Plain digits only: Decimal itself takes underscores, other scripts' digits and "Infinity".
    if not text.isascii() or "_" in text or len(text) > 2 * _MAX_DIGITS:
        raise ValueError("a price must be a decimal number")
    try:
        usd = Decimal(text)
    except InvalidOperation:
        raise ValueError("a price must be a decimal number") from None
    sign, digits, exponent = usd.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("a price must be a finite number")
    if usd.is_zero():
        return Decimal(0)
    if sign:
        raise ValueError("a price must not be negative")
    if len(digits) > _MAX_DIGITS or exponent < -_MAX_PLACES or usd.adjusted() > 12 or usd > MAX_USD:
        raise ValueError(f"a price must be at most {MAX_USD} and have at most {_MAX_PLACES} decimal places")
    return usd


def micro_rate(usd_per_million: Decimal) -> int:
    """MicroUSDC per 1,000,000 tokens, rounded up. Takes what `parse_usd` gives."""
    numerator, denominator = usd_per_million.as_integer_ratio()
    return -(-numerator * MICRO // denominator)


def micro_ceiling(usd_per_million: Decimal) -> int:
    """The highest rate in microUSDC that is not above a ceiling in USD."""
    numerator, denominator = usd_per_million.as_integer_ratio()
    return numerator * MICRO // denominator


def usd_per_token(usd_per_million: Decimal) -> str:
    """USD for one token as a plain decimal, never with an exponent: ``"0.0000001"``, ``"0"``."""
    sign, digits, exponent = usd_per_million.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("a price must be a finite number")
    text = format(Decimal((sign, digits, exponent - 6)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
