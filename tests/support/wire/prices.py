"""What an exchange costs: whole microUSDC, by the rules of the wire digest (§4.3, §4.8, §5.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

MILLION: Final = 1_000_000


def up(dividend: int, divisor: int) -> int:
    """Division rounded up."""
    return -(-dividend // divisor)


def rate(usd_per_1m: float) -> int:
    """microUSDC per million tokens of an advertised price."""
    return math.ceil(Decimal(repr(usd_per_1m)) * MILLION)


def input_bound(body: bytes) -> int:
    """Tokens a text body may hold, the same in both versions: images are not read here."""
    return up(len(body), 2) + 32


def base_max(ticket: Mapping[str, Any]) -> int:
    """The most a target may charge on this ticket: two ceilings, and a floor."""
    legs = up(ticket["input_count"] * ticket["input_rate"], MILLION)
    legs += up(ticket["max_output_count"] * ticket["output_rate"], MILLION)
    return max(legs, int(ticket["min_price"]))


def max_price(ticket: Mapping[str, Any], fee_bps: int) -> int:
    """What the payer holds ready: the fee comes on top."""
    base = base_max(ticket)
    return base + up(base * fee_bps, 10_000)


def charge(ticket: Mapping[str, Any], in_count: int, out_count: int, cached: int = 0) -> int:
    """The amount of a receipt: nothing for nothing, one ceiling for the input leg."""
    if in_count == out_count == 0:
        return 0
    plain = (in_count - cached) * ticket["input_rate"] + cached * ticket["cache_read_rate"]
    legs = up(plain, MILLION) + up(out_count * ticket["output_rate"], MILLION)
    return min(max(legs, int(ticket["min_price"])), base_max(ticket))


def min_price(details: Mapping[str, Any], output_rate: int) -> int:
    """The floor that a node's details announce."""
    tokens = up(int(details.get("min_charge_output_tokens", 1000)) * output_rate, MILLION)
    chain = (
        Decimal(repr(details.get("algo_usd_price", 0))) * 1000 * int(details.get("min_charge_algo_txns", 0))
    )
    return max(tokens, math.ceil(chain), int(details.get("min_charge_microusdc", 0)))
