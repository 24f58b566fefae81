"""One key's credit of a day at the relay network: what is set aside, what is spent. Pure.

Before a ticket is opened its highest price is set aside; when its exchange ends, what it really came to is
spent and the rest is given back. So no burst can spend more than the limit. Amounts are whole microunits
(microUSDC). An amount counts for the day (UTC) on which it was set aside, however long its exchange runs.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import msgspec

from relaydesk.core.access.limits import MOST
from relaydesk.core.access.quota import day_of, note_day, renewal
from relaydesk.core.errors import PeerError

MICRO: Final = 1_000_000
# What people may write; completes "give …".
CREDIT_ALLOWED: Final = "microunits such as 500000 or 5M, or USD such as 0.50USD"

# Thousands stand apart whole or not at all: elsewhere "1,5" is one and a half.
_MICROUNITS: Final = re.compile(r"([0-9]{1,16}|[0-9]{1,3}(?:[,_ ][0-9]{3}){1,5})([kKmM]?)")
_STEPS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
_USD: Final = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,6})?) ?USDC?", re.IGNORECASE)


class Hold(msgspec.Struct):
    """What was set aside for one ticket; ``open`` until it is settled."""

    day: int
    amount: int
    open: bool = True


class CreditStanding(msgspec.Struct, frozen=True):
    """How a key's credit of today stands."""

    limit: int
    spent: int
    held: int

    @property
    def left(self) -> int:
        """What may be set aside now."""
        return max(0, self.limit - self.spent - self.held)


class KeyCredit:
    """The books of one key. ``spent`` has what was settled, by day. A ``limit`` of 0 pays nothing."""

    __slots__ = ("_held", "limit", "spent")

    def __init__(self, limit: int = 0, spent: dict[int, int] | None = None) -> None:
        self.limit = limit
        self.spent = dict(spent or {})
        self._held: dict[int, int] = {}

    def hold(self, amount: int, wall_ms: int) -> Hold:
        """Set ``amount`` aside. What is free always may be.

        Raises `PeerError` ``credit_per_day_exceeded``, or ``concurrency_exceeded`` where it would fit once
        running requests have ended. A refusal changes nothing.
        """
        day = day_of(wall_ms)
        spent, held = self.spent.get(day, 0), self._held.get(day, 0)
        if amount and spent + held + amount > self.limit:
            if spent + amount <= self.limit:
                raise PeerError(
                    "concurrency_exceeded",
                    "the rest of this key's credit of the day is set aside for its running requests",
                    "try again when one of them has ended",
                    retry_after=2,
                )
            raise self._over(amount, self.limit - spent, wall_ms)
        if amount:
            self._held[day] = held + amount
        return Hold(day, amount)

    def settle(self, hold: Hold, amount: int) -> int:
        """Spend ``amount`` of what was set aside; returns by how much that differs from it.

        The second time does nothing. More than was set aside is booked as it is: it has been paid.
        """
        if not hold.open:
            return 0
        hold.open = False
        if hold.amount:
            self._held[hold.day] -= hold.amount
            if not self._held[hold.day]:
                del self._held[hold.day]
        note_day(self.spent, hold.day, amount)
        return amount - hold.amount

    def standing(self, wall_ms: int) -> CreditStanding:
        """How it stands now."""
        day = day_of(wall_ms)
        return CreditStanding(self.limit, self.spent.get(day, 0), self._held.get(day, 0))

    def _over(self, amount: int, left: int, wall_ms: int) -> PeerError:
        if not self.limit:
            return PeerError(
                "credit_per_day_exceeded",
                "this key may not pay for models of the relay network",
                "its operator gives it credit: `relaydesk key set NAME --credit-per-day AMOUNT`, or "
                "RELAY_DEFAULT_KEY_CREDIT_PER_DAY for the default key",
            )
        return PeerError(
            "credit_per_day_exceeded",
            f"the request may cost {amount} microunits, and this key has {max(0, left)} of its {self.limit} "
            "of the day left",
            f"shorten it, lower max_tokens, or wait: {renewal(wall_ms)}",
        )


def parse_credit(text: str) -> int:
    """Microunits of what people write, wherever they write an amount.

    ``250000``, ``250,000``, ``250k``, ``5M``, ``0.25USD``, ``0.25 usd``. Raises `ValueError`.
    """
    text = text.strip()
    if plain := _MICROUNITS.fullmatch(text):
        amount = int(re.sub("[,_ ]", "", plain[1])) * _STEPS[plain[2].lower()]
    elif found := _USD.fullmatch(text):
        amount = int(Decimal(found[1]) * MICRO)
    else:
        raise ValueError("no amount")
    if amount > MOST:
        raise ValueError("out of range")
    return amount


def credit_text(amount: int) -> str:
    """An amount as people read it: ``250,000 (0.25 USD)``, ``0``."""
    return f"{amount:,} ({format((Decimal(amount) / MICRO).normalize(), 'f')} USD)" if amount else "0"
