"""What one key may use: three limits, each off at 0, and what it may spend at the relay network."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from relaydesk.core.errors import LocalError

# Far above any use, and sums of it stay exact in every front's numbers.
MOST: Final = 2**50
FIELDS: Final = ("tokens_per_day", "max_concurrency", "requests_per_minute", "credit_per_day")

_NO_LIMIT: Final = "0 means no limit"
# Money is never without a limit.
_ZERO: Final = {"credit_per_day": "in microunits; 0 pays for nothing"}


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one key (seed: Auth). 0 means no limit, but for ``credit_per_day``.

    ``tokens_per_day`` counts prompts and answers, from midnight to midnight UTC; ``max_concurrency``
    requests that run or wait at once; ``requests_per_minute`` requests accepted in any 60 seconds;
    ``credit_per_day`` microunits that may be paid to the relay network in a day (UTC), 0 for none.
    """

    tokens_per_day: int = 0
    max_concurrency: int = 0
    requests_per_minute: int = 0
    credit_per_day: int = 0


def check_limit(name: str, value: Any) -> int:
    """``value`` where it can be the limit ``name``. Raises `LocalError` ``invalid_request`` naming it."""
    if isinstance(value, bool) or not isinstance(value, int):
        hint = _ZERO.get(name, _NO_LIMIT)
        raise LocalError("invalid_request", f"{name} must be a whole number", hint, param=name)
    if not 0 <= value <= MOST:
        shown = value if abs(value) < 10**18 else "far out of range"
        zero = "0 to pay for nothing" if name in _ZERO else "0 for no limit"
        raise LocalError(
            "invalid_request", f"{name} is {shown}", f"choose 1 to {MOST}, or {zero}", param=name
        )
    return value
