"""What a target needs of a ledger, whoever keeps it: the embedded book, or a chain (design §6, wire §6)."""

from __future__ import annotations

from typing import Protocol

from relaydesk.core.ledger.extensions import LedgerNote, OpenRequest, Settlement
from relaydesk.core.ledger.records import Values
from relaydesk.core.ledger.terms import Terms
from relaydesk.core.ledger.ticket import Ticket


class Ledger(Protocol):
    """A call is done when it returns. It refuses with `LedgerRefusal`; `EnvError`: it cannot be had."""

    async def open_(self, terms: Terms, request: OpenRequest | None, tx_id: str) -> Ticket:
        """Hold a ticket's price for its payer, once."""
        ...

    async def receipt(self, tx_id: str, values: Values) -> Ticket:
        """The node's claim of what it is owed."""
        ...

    async def note(self, payer: str, code: str = "", items: tuple[Settlement, ...] = ()) -> LedgerNote:
        """What came with a reserve, and how its payer's account stands."""
        ...

    async def answer(self, body: bytes) -> bytes:
        """The answer to a payer's signed question, both as JSON."""
        ...
