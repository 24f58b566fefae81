"""Tickets that were issued: in memory, each good for one request, and gone with a restart (wire §4.6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.records.ticket import Ticket

# From reserve to request.
TICKET_LIFE_S: Final = 120
# For so long a ticket keeps a slot for whoever holds it: who comes later takes what is free. Longer, and
# tickets that nobody means to use would keep everybody else out.
PROMISE_S: Final = 10
# Of tickets at once, spent ones that are still being answered among them.
MOST_TICKETS: Final = 4096


@dataclass(frozen=True, slots=True)
class Held:
    """What a reserve agreed on: one record that never changes, so that its key and its recipient are always
    those of the same reserve. ``window`` is the model's then, in tokens."""

    ticket: Ticket
    key: bytes = field(repr=False)
    recipient: str
    payer: str = field(repr=False)
    bound_version: int
    window: int


class Tickets:
    """All steps are on the loop without a wait between, so each of them is atomic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, Held] = {}
        self._spent: dict[str, Held] = {}

    @property
    def full(self) -> bool:
        """Whether no more can be issued."""
        self._forget()
        return len(self._waiting) + len(self._spent) >= MOST_TICKETS

    @property
    def waiting(self) -> int:
        """Tickets that may still be used."""
        self._forget()
        return len(self._waiting)

    @property
    def spent(self) -> int:
        """Tickets whose request is being answered."""
        return len(self._spent)

    def promised(self, model: str = "") -> int:
        """Tickets of a model, or of all, that have a slot or are expected to want one soon."""
        self._forget()
        soon = [each for each in self._waiting.values() if not self._late(each)]
        return sum(1 for each in (*soon, *self._spent.values()) if not model or each.ticket.model == model)

    def add(self, held: Held) -> None:
        """Issue it."""
        self._waiting[held.ticket.ticket_id] = held

    def drop(self, held: Held) -> None:
        """It was not handed out after all."""
        self._waiting.pop(held.ticket.ticket_id, None)

    def peek(self, ticket_id: str) -> Held | None:
        """A ticket that was not spent, expired or not: nothing of it changes."""
        return self._waiting.get(ticket_id)

    def consume(self, ticket_id: str) -> Held | None:
        """Spend it, once; None where that was done, or its time is over. `release` must follow."""
        held = self._waiting.pop(ticket_id, None)
        if held is None or self._expired(held):
            return None
        self._spent[ticket_id] = held
        return held

    def release(self, held: Held) -> None:
        """Its request is over, whichever way. The second time does nothing."""
        self._spent.pop(held.ticket.ticket_id, None)

    def _expired(self, held: Held) -> bool:
        return self._clock.wall_ms() > held.ticket.expires_at * 1000

    def _late(self, held: Held) -> bool:
        since_s = TICKET_LIFE_S - held.ticket.expires_at + self._clock.wall_ms() // 1000
        return not 0 <= since_s < PROMISE_S

    def _forget(self) -> None:
        # They all live equally long, so the oldest are first.
        while self._waiting and self._expired(next(iter(self._waiting.values()))):
            del self._waiting[next(iter(self._waiting))]
