"""When a ticket's time is over, by a clock that nobody sets.

What is left of it is told from the wall clock once: when it is opened, and again after a restart. From then
on it runs on the monotonic clock, so that a jump of the wall clock neither takes a payer's time away nor
leaves a hold standing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relaydesk.core.ledger.terms import LONGEST_S
from relaydesk.core.ledger.ticket import LIVE, Ticket
from relaydesk.core.ports import Clock

WATCHDOG_S: Final = 30.0


@dataclass(slots=True)
class _Due:
    deadline: float
    deadline_s: int
    watchdog: float | None = None


class Deadlines:
    """Tickets that have not ended, by transaction. ``watchdog_s``: how long a receipt waits for the payer."""

    def __init__(self, clock: Clock, watchdog_s: float = WATCHDOG_S) -> None:
        self._clock = clock
        self._watchdog_s = watchdog_s
        self._due: dict[str, _Due] = {}

    def __len__(self) -> int:
        return len(self._due)

    def watch(self, ticket: Ticket) -> None:
        """Watch a live ticket from now on; one that is watched already keeps its time."""
        if ticket.state not in LIVE or ticket.tx_id in self._due:
            return
        wall_ms, mono = self._clock.wall_ms(), self._clock.mono()
        left = ticket.deadline_s - wall_ms / 1000
        # A clock that was set back must not hold credit for years.
        left = min(max(0.0, left), LONGEST_S + ticket.grace_s)
        due = _Due(mono + left, ticket.deadline_s)
        if ticket.receipt is not None and ticket.node_claim is None:
            waited = (wall_ms - ticket.receipt_ms) / 1000
            due.watchdog = mono + min(max(0.0, self._watchdog_s - waited), self._watchdog_s)
        self._due[ticket.tx_id] = due

    def received(self, tx_id: str) -> None:
        """The node has its receipt: the watchdog begins."""
        due = self._due.get(tx_id)
        if due is not None and due.watchdog is None:
            due.watchdog = self._clock.mono() + self._watchdog_s

    def filed(self, tx_id: str) -> None:
        """The watchdog has nothing more to do."""
        due = self._due.get(tx_id)
        if due is not None:
            due.watchdog = None

    def forget(self, tx_id: str) -> None:
        """It has ended, or was never opened."""
        self._due.pop(tx_id, None)

    def now_s(self, ticket: Ticket) -> int:
        """The ticket's time in seconds since 1970: its deadline, less what is left until then."""
        due = self._due.get(ticket.tx_id)
        if due is None:
            return self._clock.wall_ms() // 1000
        left = due.deadline - self._clock.mono()
        return due.deadline_s if left <= 0 else min(due.deadline_s - 1, int(due.deadline_s - left))

    def over(self) -> tuple[str, ...]:
        """Transactions whose deadline is over."""
        now = self._clock.mono()
        return tuple(tx_id for tx_id, due in self._due.items() if due.deadline <= now)

    def unclaimed(self) -> tuple[str, ...]:
        """Transactions whose payer has kept silent for the watchdog's time."""
        now = self._clock.mono()
        return tuple(
            tx_id for tx_id, due in self._due.items() if due.watchdog is not None and due.watchdog <= now
        )
