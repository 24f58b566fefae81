"""The payer's side of a ticket: what it opened, what it says it cost, and whether its target knows."""

from __future__ import annotations

from typing import Literal

import msgspec

from relaydesk.core.ledger.extensions import (
    Settled,
    claim_json,
    open_json,
    protest_json,
)
from relaydesk.core.ledger.records import Claim, OpenRecord, Protest, Signer, Values, signature
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import Statement, fault_in
from relaydesk.core.ledger.ticket import Kind

# open: nothing to say yet; waiting: a claim or protest goes with the next reserve; told: the target has
# answered that one; late: nobody answered in time.
PaidState = Literal["open", "waiting", "told", "late"]
_ENDS: tuple[Kind, ...] = ("settle", "lapse", "resolve")


class PaidTicket(msgspec.Struct, frozen=True):
    """One ticket in the payer's own book. ``answer`` is what its target said of the claim or protest."""

    open: OpenRecord
    open_sig: str
    tx_id: str
    model: str
    opened_ms: int
    state: PaidState = "open"
    claim: Claim | None = None
    protest: Protest | None = None
    sig: str = ""
    answer: str = ""

    @property
    def extension(self) -> dict[str, object]:
        """``relaydesk_open`` of the inner header."""
        return open_json(self.open, self.open_sig)

    @property
    def item(self) -> dict[str, object] | None:
        """The item of ``relaydesk_settle``, None where there is nothing to say."""
        if self.protest is not None:
            return protest_json(self.protest, self.sig)
        return None if self.claim is None else claim_json(self.claim, self.sig)


def pay(record: OpenRecord, payer: Signer, model: str, now_ms: int) -> PaidTicket:
    """Sign an open record. Raises `RecordError` where the ticket's id is none."""
    return PaidTicket(record, signature(payer, record), record.tx_id(), model, now_ms)


def claimed(ticket: PaidTicket, values: Values, payer: Signer) -> PaidTicket:
    """The receipt was verified: agree to it. The same again changes nothing.

    Raises `LedgerRefusal`: ``claim_differs``, ``over_price``.
    """
    claim = Claim(ticket.tx_id, ticket.open.ticket_id, "payer", values)
    if ticket.claim == claim:
        return ticket
    if ticket.claim is not None or ticket.protest is not None:
        raise LedgerRefusal("claim_differs")
    if values.amount > ticket.open.max_price:
        raise LedgerRefusal("over_price")
    return msgspec.structs.replace(ticket, claim=claim, sig=signature(payer, claim), state="waiting")


def protested(ticket: PaidTicket, body_hash: str, payer: Signer) -> PaidTicket:
    """The answer is not what its receipt states: protest. Only where nothing was claimed.

    Raises `LedgerRefusal` ``claim_differs``.
    """
    protest = Protest(ticket.tx_id, ticket.open.ticket_id, 1, body_hash)
    if ticket.protest == protest:
        return ticket
    if ticket.claim is not None or ticket.protest is not None:
        raise LedgerRefusal("claim_differs")
    return msgspec.structs.replace(ticket, protest=protest, sig=signature(payer, protest), state="waiting")


def answered(ticket: PaidTicket, said: Settled) -> PaidTicket:
    """The target has taken the claim or protest, or refused it for good."""
    if ticket.state != "waiting":
        return ticket
    return msgspec.structs.replace(ticket, state="told", answer=said.state or said.refused)


def disagreement(statement: Statement, signing: str, paid: dict[str, PaidTicket]) -> str:
    """The first thing in a target's statement that our own book does not bear out; empty where there is none.

    ``signing`` is the address of the target's key by its directory. Tickets that never arrived are no
    fault; one that we did not open, or that ended at another amount than we agreed to, is.
    """
    if statement.statement.signing != signing:
        return "it is not signed by the key that the directory has for its node"
    fault = fault_in(statement)
    if fault:
        return fault
    for row in statement.rows:
        ours = paid.get(row.tx_id)
        if row.kind == "open" and ours is None:
            return f"row {row.seq}: we have not opened {row.tx_id}"
        if row.kind not in _ENDS or ours is None or ours.claim is None:
            continue
        agreed = ours.claim.values.amount
        if row.earned != agreed:
            return f"row {row.seq}: {row.tx_id} ended at {row.earned}, and we agreed to {agreed}"
    return ""
