"""Amounts, moments and names of the books as people read them: microunits, as the command line has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from relaydesk.surfaces.console.panes.keys.present import until

UNIT: Final = "microunits"
# A deadline that is nearer counts down to the second.
_NEAR_MS: Final = 3_600_000


def amount(value: int | None) -> str:
    """Microunits with their thousands apart: ``1,250,000``; a dash where nobody has said."""
    return "–" if value is None else f"{value:,}"


def left(at_ms: int, now_ms: int) -> str:
    """How long until a deadline: ``9:42``, beyond an hour in one unit; ``due`` once it is over."""
    rest = at_ms - now_ms
    if rest <= 0:
        return "due"
    if rest >= _NEAR_MS:
        return until(at_ms, now_ms)
    minutes, seconds = divmod(rest // 1000, 60)
    return f"{minutes}:{seconds:02}"


def day(number: int) -> str:
    """A day (since 1970, UTC) as ``2026-03-14``; a number that is no date as itself."""
    try:
        return datetime.fromtimestamp(number * 86_400, UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return str(number)
