"""One ticket from open to its end (wire §4.9), as pure steps.

```
open ── a first claim ──▶ pending_settle ── an equal second one ──▶ settled
  │                            ├─────────── a differing second one ─▶ frozen ── resolve ──▶ settled
  ├── protest ─▶ frozen        ├── protest ─▶ frozen
  └── deadline ▶ refunded      └── deadline ▶ lapsed with the node's claim, refunded without
```

The receipt is the node's claim, signed and kept at once but filed only when the payer claims, when the
watchdog's time is over, or at the deadline: until then the ticket counts as open.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from relaydesk.core.ledger.records import (
    AnyRecord,
    Claim,
    Closing,
    OpenRecord,
    Outcome,
    Protest,
    Signer,
    signature,
)
from relaydesk.core.ledger.refusal import LedgerRefusal

State = Literal["open", "pending_settle", "frozen", "settled", "lapsed", "refunded", "resolved"]
Kind = Literal[
    "redeem", "open", "receipt", "claim", "protest", "freeze", "settle", "lapse", "refund", "resolve"
]
LIVE: Final = frozenset({"open", "pending_settle"})
_ENDS: Final[dict[Outcome, Kind]] = {
    "settled": "settle",
    "lapsed": "lapse",
    "refunded": "refund",
    "frozen": "freeze",
    "resolved": "resolve",
}


class SignedClaim(msgspec.Struct, frozen=True):
    """A claim and its signature (base64)."""

    claim: Claim
    sig: str


class Ticket(msgspec.Struct, frozen=True):
    """One ticket as the ledger keeps it.

    ``fee_bps`` and ``grace_s`` are as they were when it was opened. ``payer`` is empty for a free one that
    nobody signed for: of that no account has a row. ``amount`` and ``fee`` are what its end came to.
    """

    tx_id: str
    ticket_id: str
    payer: str
    model: str
    max_price: int
    expires_at: int
    opened_ms: int
    fee_bps: int = 0
    grace_s: int = 0
    state: State = "open"
    receipt: SignedClaim | None = None
    receipt_ms: int = 0
    node_claim: SignedClaim | None = None
    payer_claim: SignedClaim | None = None
    protest: Protest | None = None
    amount: int = 0
    fee: int = 0
    ended_ms: int = 0

    @property
    def deadline_s(self) -> int:
        """When it lapses or is paid back, in seconds since 1970."""
        return self.expires_at + self.grace_s

    @property
    def held(self) -> int:
        """What is held for it of its payer's credit."""
        return self.max_price if self.state in LIVE or self.state == "frozen" else 0


class Entry(msgspec.Struct, frozen=True):
    """One signed thing that happened, and what it moved; the amounts add up to ``issued``."""

    kind: Kind
    record: AnyRecord
    signer: str
    sig: str
    balance: int = 0
    held: int = 0
    earned: int = 0
    fee: int = 0
    issued: int = 0


class Step(msgspec.Struct, frozen=True):
    """What became of a ticket and what there is to write down; no entries: nothing changed."""

    ticket: Ticket
    entries: tuple[Entry, ...] = ()


def fee_of(amount: int, fee_bps: int) -> int:
    """The network's fee on top of the operator's amount, rounded down (wire §4.9)."""
    return amount * fee_bps // 10_000


def open_entry(record: OpenRecord, sig: str) -> Entry:
    """The hold of an open record; the account must have as much."""
    return Entry("open", record, record.payer, sig, balance=-record.max_price, held=record.max_price)


def note_receipt(ticket: Ticket, claim: Claim, node: Signer, now_ms: int) -> Step:
    """The node's receipt: its claim, which it will file. On a frozen ticket it is evidence only.

    The same again changes nothing. Raises `LedgerRefusal`: ``claim_differs``, ``over_price``, ``ended``.
    """
    _check_about(ticket, claim)
    if ticket.receipt is not None:
        if ticket.receipt.claim == claim:
            return Step(ticket)
        raise LedgerRefusal("claim_differs")
    if ticket.state not in LIVE and ticket.state != "frozen":
        raise LedgerRefusal("ended")
    _check_price(ticket, claim)
    sig = signature(node, claim)
    ticket = msgspec.structs.replace(ticket, receipt=SignedClaim(claim, sig), receipt_ms=now_ms)
    step = Step(ticket, (Entry("receipt", claim, node.address, sig),))
    if ticket.payer_claim is None or ticket.state == "frozen":
        return step
    return _then(step, file_receipt(ticket, node, now_ms))


def file_receipt(ticket: Ticket, node: Signer, now_ms: int) -> Step:
    """The node settles by itself: what its receipt says becomes its claim. Nothing where that is done."""
    if ticket.receipt is None or ticket.node_claim is not None or ticket.state not in LIVE:
        return Step(ticket)
    claim, sig = ticket.receipt.claim, ticket.receipt.sig
    filed = msgspec.structs.replace(ticket, state="pending_settle", node_claim=ticket.receipt)
    return _then(Step(filed, (Entry("claim", claim, node.address, sig),)), _agree(filed, node, now_ms))


def take_claim(ticket: Ticket, claim: Claim, sig: str, node: Signer, now_ms: int) -> Step:
    """The payer's claim; its signature is checked before. With the node's, it settles or freezes.

    The same again changes nothing. Raises `LedgerRefusal`: ``claim_differs``, ``over_price``, ``frozen``,
    ``ended``.
    """
    _check_about(ticket, claim)
    if ticket.payer_claim is not None:
        if ticket.payer_claim.claim == claim:
            return Step(ticket)
        raise LedgerRefusal("claim_differs")
    _check_live(ticket)
    _check_price(ticket, claim)
    ticket = msgspec.structs.replace(ticket, state="pending_settle", payer_claim=SignedClaim(claim, sig))
    step = Step(ticket, (Entry("claim", claim, ticket.payer, sig),))
    if ticket.node_claim is None:
        return _then(step, file_receipt(ticket, node, now_ms))
    return _then(step, _agree(ticket, node, now_ms))


def take_protest(ticket: Ticket, protest: Protest, sig: str, node: Signer, now_ms: int) -> Step:
    """The payer's protest freezes; its signature is checked before. The same again changes nothing.

    Raises `LedgerRefusal`: ``frozen``, ``ended``.
    """
    _check_about(ticket, protest)
    if ticket.protest == protest:
        return Step(ticket)
    _check_live(ticket)
    ticket = msgspec.structs.replace(ticket, protest=protest)
    step = Step(ticket, (Entry("protest", protest, ticket.payer, sig),))
    return _then(step, _close(ticket, "frozen", 0, node, now_ms))


def lapse(ticket: Ticket, node: Signer, now_s: int, now_ms: int) -> Step:
    """The deadline: the node is paid what it claims, or the payer is paid back. Nothing for one that ended.

    A payer's claim alone does not pay the node. Raises `LedgerRefusal` ``too_early``.
    """
    if ticket.state not in LIVE:
        return Step(ticket)
    if now_s < ticket.deadline_s:
        raise LedgerRefusal("too_early")
    step = file_receipt(ticket, node, now_ms)
    if step.ticket.state not in LIVE:
        return step
    claimed = step.ticket.node_claim
    if claimed is None:
        return _then(step, _close(step.ticket, "refunded", 0, node, now_ms))
    return _then(step, _close(step.ticket, "lapsed", claimed.claim.values.amount, node, now_ms))


def resolve(ticket: Ticket, amount: int, operator: Signer, now_ms: int) -> Step:
    """The operator ends a dispute at ``amount``: what its receipt says at most, else 0.

    Raises `LedgerRefusal`: ``not_frozen``, ``over_price``.
    """
    if ticket.state != "frozen":
        raise LedgerRefusal("not_frozen")
    evidence = ticket.node_claim or ticket.receipt
    if amount > (0 if evidence is None else evidence.claim.values.amount):
        raise LedgerRefusal("over_price")
    return _close(ticket, "resolved", amount, operator, now_ms)


def _agree(ticket: Ticket, node: Signer, now_ms: int) -> Step:
    """Settle or freeze where both sides have claimed."""
    if ticket.node_claim is None or ticket.payer_claim is None:
        return Step(ticket)
    values = ticket.node_claim.claim.values
    if ticket.payer_claim.claim.values != values:
        return _close(ticket, "frozen", 0, node, now_ms)
    return _close(ticket, "settled", values.amount, node, now_ms)


def _close(ticket: Ticket, outcome: Outcome, amount: int, signer: Signer, now_ms: int) -> Step:
    fee = fee_of(amount, ticket.fee_bps)
    record = Closing(ticket.tx_id, ticket.ticket_id, outcome, amount, fee, now_ms)
    sig = signature(signer, record)
    if outcome == "frozen":
        frozen = msgspec.structs.replace(ticket, state="frozen")
        return Step(frozen, (Entry("freeze", record, signer.address, sig),))
    entry = Entry(
        _ENDS[outcome],
        record,
        signer.address,
        sig,
        balance=ticket.max_price - amount - fee,
        held=-ticket.max_price,
        earned=amount,
        fee=fee,
    )
    ended = msgspec.structs.replace(ticket, state=outcome, amount=amount, fee=fee, ended_ms=now_ms)
    return Step(ended, (entry,))


def _then(first: Step, second: Step) -> Step:
    return Step(second.ticket, first.entries + second.entries)


def _check_about(ticket: Ticket, record: Claim | Protest) -> None:
    if (record.tx_id, record.ticket_id) != (ticket.tx_id, ticket.ticket_id):
        raise LedgerRefusal("other_ticket")


def _check_live(ticket: Ticket) -> None:
    if ticket.state not in LIVE:
        raise LedgerRefusal("frozen" if ticket.state == "frozen" else "ended")


def _check_price(ticket: Ticket, claim: Claim) -> None:
    amount = claim.values.amount
    if amount + fee_of(amount, ticket.fee_bps) > ticket.max_price:
        raise LedgerRefusal("over_price")
