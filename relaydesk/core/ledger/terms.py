"""What a target says a ticket is, against which an open record is checked; and a new ticket out of both."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.ledger.extensions import OpenRequest
from relaydesk.core.ledger.records import MOST, check_signature, ticket_bytes, tx_id_of
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.ticket import Entry, Step, Ticket, open_entry
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.ref import NodeRef

# No ticket lives longer: a hold always ends within this and the grace.
LONGEST_S: Final = 3600
_FREE: Final = b"relaydesk-free-v1\0"


class Terms(msgspec.Struct, frozen=True):
    """A ticket as its target issued it (wire §4.3), and the payer that its reserve proved.

    ``ticket_id`` is base64 of 16 bytes, ``expires_at`` in seconds since 1970, ``max_price`` in microunits.
    """

    ticket_id: str
    payer: str
    model: str
    max_price: int
    expires_at: int


class Policy(msgspec.Struct, frozen=True):
    """What a ticket keeps from its opening on: the network's fee in 1/10000, and the grace in seconds."""

    fee_bps: int = 0
    grace_s: int = 600


def open_ticket(
    terms: Terms, request: OpenRequest | None, tx_id: str, ref: NodeRef, policy: Policy, now_ms: int
) -> Step:
    """A new ticket and its hold, everything checked but the account and whether it is new.

    ``tx_id`` is the one of the inner header, which must be the record's. Only price 0 needs no record: such a
    ticket's transaction follows from its id, so that nobody takes a name that an open record will have.

    Raises `LedgerRefusal`: ``unsigned``, ``terms_differ``, ``bad_signature``, ``expired``, ``bad_record``.
    """
    now_s = now_ms // 1000
    if not now_s < terms.expires_at + policy.grace_s or terms.expires_at > now_s + LONGEST_S:
        raise LedgerRefusal("expired")
    if not 0 <= terms.max_price <= MOST:
        raise LedgerRefusal("terms_differ")
    entries: tuple[Entry, ...] = ()
    if request is None:
        if terms.max_price:
            raise LedgerRefusal("unsigned")
        tx_id = _free_tx(terms.ticket_id)
    else:
        entries = (_checked(terms, request, tx_id, ref),)
    ticket = Ticket(
        tx_id=tx_id,
        ticket_id=terms.ticket_id,
        payer=terms.payer if entries else "",
        model=terms.model,
        max_price=terms.max_price,
        expires_at=terms.expires_at,
        opened_ms=now_ms,
        fee_bps=policy.fee_bps,
        grace_s=policy.grace_s,
    )
    return Step(ticket, entries)


def _free_tx(ticket_id: str) -> str:
    try:
        data = _FREE + ticket_bytes(ticket_id)
    except RecordError as error:
        raise LedgerRefusal("bad_record") from error
    return tx_id_of(data)


def _checked(terms: Terms, request: OpenRequest, tx_id: str, ref: NodeRef) -> Entry:
    record = request.record
    same = (
        record.ticket_id == terms.ticket_id
        and (record.operator, record.node) == ref
        and record.payer == terms.payer
        and record.max_price == terms.max_price
        and record.expires_at == terms.expires_at
    )
    if not same:
        raise LedgerRefusal("terms_differ")
    check_signature(record.payer, record, request.sig)
    if record.tx_id() != tx_id:
        raise LedgerRefusal("terms_differ")
    return open_entry(record, request.sig)
