"""Who may have an answer: the node's checks of a sealed request, in the wire's order (§4.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from relaydesk.core.errors import EnvError
from relaydesk.core.ledger.extensions import read_open
from relaydesk.core.ledger.port import Ledger
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.terms import Terms
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.sealed.admission import tag_holds
from relaydesk.core.relay.sealed.envelope import SealedError
from relaydesk.core.relay.sealed.inner import Inner, read_inner
from relaydesk.engine.relay.target.opening import Opening
from relaydesk.engine.relay.target.tickets import Held, Tickets


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that was paid for. ``tx_id`` is what its answer is bound to, ``ledger_tx`` its name in the
    ledger. Whoever has it gives its ticket back (`Tickets.release`), whatever becomes of it."""

    held: Held
    tx_id: str
    ledger_tx: str
    body: bytes = field(repr=False)


class InferenceDesk:
    """Lets requests in. ``drained`` says that tickets are honoured no longer."""

    def __init__(
        self, opening: Opening, tickets: Tickets, ledger: Ledger, drained: Callable[[], bool]
    ) -> None:
        self._opening = opening
        self._tickets = tickets
        self._ledger = ledger
        self._drained = drained

    async def admit(self, body: bytes, limit: int) -> Admitted:
        """Check a sealed request of at most ``limit`` bytes. Raises `WireError`, to be said unsealed.

        Until its ticket is spent a refusal leaves it as it was; ``payment_verification_failed`` burns it.
        """
        inner = await self._inner(body, limit)
        if not inner.ticket_id:
            raise WireError("ticket_required", "the request names no ticket: reserve first")
        if self._drained():
            raise WireError("node_draining", "this node is going down")
        seen = self._tickets.peek(inner.ticket_id)
        if seen is None:
            raise WireError("ticket_invalid", "there is no such ticket, or it was used")
        # Before it is spent: an id is public, and only who reserved can make the tag.
        if not await self._opening.off_loop(len(inner.body), lambda: _tagged(inner, seen)):
            raise WireError("admission_tag_invalid", "the tag is not that of this ticket and body")
        if not seen.recipient or inner.reply_to != seen.recipient:
            raise WireError("reply_to_mismatch", "reply_to_public_key is not the one that was reserved with")
        held = self._tickets.consume(inner.ticket_id)
        if held is None:
            raise WireError("ticket_invalid", "the ticket has expired, or was used")
        try:
            ledger_tx = await self._paid(held, inner)
        except BaseException:
            self._tickets.release(held)
            raise
        return Admitted(held, inner.tx_id, ledger_tx, inner.body)

    async def _inner(self, body: bytes, limit: int) -> Inner:
        try:
            frame = await self._opening.open(body, limit)
            return await self._opening.off_loop(len(frame), lambda: read_inner(frame))
        except SealedError as error:
            raise WireError("bad_envelope", str(error)) from None

    async def _paid(self, held: Held, inner: Inner) -> str:
        """The payment: the open record rides along, so there is nothing to wait for."""
        ticket = held.ticket
        terms = Terms(ticket.ticket_id, held.payer, ticket.model, ticket.max_price, ticket.expires_at)
        try:
            request = read_open(inner.opening) if inner.opening else None
            return (await self._ledger.open_(terms, request, inner.tx_id)).tx_id
        except LedgerRefusal as refusal:
            raise WireError("payment_verification_failed", str(refusal)) from None
        except EnvError:
            raise WireError(
                "payment_verification_failed", "this node's books cannot be written now"
            ) from None


def _tagged(inner: Inner, held: Held) -> bool:
    return tag_holds(inner.tag, held.key, inner.ticket_id, inner.tx_id, inner.body)
