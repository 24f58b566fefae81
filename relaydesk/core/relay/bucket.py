"""How often each of many may ask: a token bucket for each. Pure.

Of a relay's clients it knows addresses and nothing of what was asked for (design §6). An IPv6 client counts
by its /64, because whoever has one address there has them all.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from relaydesk.core.tls.names import parse_address

# Buckets remembered; beyond that the one used longest ago is forgotten, and is full again.
MOST: Final = 16_384
_V6_KEPT_BITS: Final = 64


def bucket_key(address: str) -> str:
    """What counts as one client: an IPv4 address, the /64 of an IPv6 address, else the text itself."""
    parsed = parse_address(address)
    if parsed is None or parsed.version == 4:
        return address if parsed is None else str(parsed)
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else hex(int(parsed) >> _V6_KEPT_BITS)


class Buckets:
    """``take`` spends one of a key's tokens, which come back evenly over a minute."""

    __slots__ = ("_full_after",)

    def __init__(self) -> None:
        # When each bucket will be full again: one number says all, and those in the past say nothing.
        self._full_after: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_after)

    def take(self, key: str, per_minute: int, now: float, *, burst: int = 0) -> float:
        """0.0 where ``key`` may ask now, else the seconds until it may. ``now`` is a monotonic time.

        ``burst`` is how many may come at once, 0 for a minute's worth.
        """
        each = 60.0 / per_minute
        full = max(self._full_after.pop(key, now), now)
        wait = full + each - (now + (burst or per_minute) * each)
        # Put last: whoever asked longest ago is first.
        self._full_after[key] = full if wait > 1e-9 else full + each
        if len(self._full_after) > MOST:
            self._full_after.popitem(last=False)
        return wait if wait > 1e-9 else 0.0

    def forget_full(self, now: float) -> None:
        """Drop the buckets that are full again: nothing about those clients is known any more."""
        for key in [key for key, full in self._full_after.items() if full <= now]:
            del self._full_after[key]
