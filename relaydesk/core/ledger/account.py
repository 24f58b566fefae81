"""An account: what a payer may spend, what is held, and the chain of rows that says why."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from relaydesk.core.ledger.records import MOST, AnyRecord
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.ticket import Entry, Kind
from relaydesk.core.relay.records.canonical import I64, U64, S
from relaydesk.core.relay.ref import NodeRef

_ROW: Final = b"relaydesk-row-v1\0"
_ACCOUNT: Final = b"relaydesk-account-v1\0"


class Row(msgspec.Struct, frozen=True):
    """One line of an account. ``seq`` counts from 1; ``balance`` and ``held`` are what stands after it.

    The changes add up: ``balance_change + held_change + earned + fee == issued``. ``prev`` and ``hash``
    (64 hex digits) chain it to the line before, the first one to node and account.
    """

    seq: int
    at_ms: int
    kind: Kind
    tx_id: str
    balance_change: int
    held_change: int
    earned: int
    fee: int
    issued: int
    balance: int
    held: int
    record: AnyRecord
    signer: str
    sig: str
    prev: str
    hash: str


class Account(msgspec.Struct, frozen=True):
    """``head`` is the newest row's hash. ``balance`` can be spent; ``held`` belongs to open tickets."""

    address: str
    balance: int
    held: int
    seq: int
    head: str


class BooksBrokenError(Exception):
    """A posting that would break a rule of bookkeeping: a fault of ours, and nothing is written."""


def new_account(ref: NodeRef, address: str) -> Account:
    """An account nothing was booked to."""
    return Account(address, 0, 0, 0, start_of(ref, address))


def start_of(ref: NodeRef, address: str) -> str:
    """What the first row is chained to: no row of one account can stand in another."""
    return hashlib.sha256(_ACCOUNT + U64(ref.operator) + U64(ref.node) + S(address)).hexdigest()


def post(account: Account, entry: Entry, at_ms: int) -> tuple[Account, Row]:
    """Book an entry.

    Raises `LedgerRefusal`: ``not_enough_credit``, ``account_full``; `BooksBrokenError`.
    """
    if entry.balance + entry.held + entry.earned + entry.fee != entry.issued:
        raise BooksBrokenError(f"{entry.kind} does not add up")
    balance, held = account.balance + entry.balance, account.held + entry.held
    if balance < 0:
        raise LedgerRefusal("not_enough_credit")
    if held < 0 or entry.earned < 0 or entry.fee < 0 or entry.issued < 0:
        raise BooksBrokenError(f"{entry.kind} takes what is not there")
    if balance + held > MOST:
        raise LedgerRefusal("account_full")
    row = Row(
        seq=account.seq + 1,
        at_ms=at_ms,
        kind=entry.kind,
        tx_id=tx_of(entry.record),
        balance_change=entry.balance,
        held_change=entry.held,
        earned=entry.earned,
        fee=entry.fee,
        issued=entry.issued,
        balance=balance,
        held=held,
        record=entry.record,
        signer=entry.signer,
        sig=entry.sig,
        prev=account.head,
        hash="",
    )
    row = msgspec.structs.replace(row, hash=hash_of(row))
    return Account(account.address, balance, held, row.seq, row.hash), row


def tx_of(record: AnyRecord) -> str:
    """The transaction a record is about; empty for a redemption."""
    if hasattr(record, "tx_id"):
        found = record.tx_id
        return found() if callable(found) else str(found)
    return ""


def hash_of(row: Row) -> str:
    """What chains the next row to this one."""
    numbers = (row.balance_change, row.held_change, row.earned, row.fee, row.issued, row.balance, row.held)
    return hashlib.sha256(
        b"".join(
            (
                _ROW,
                S(row.prev),
                U64(row.seq),
                I64(row.at_ms),
                S(row.kind),
                S(row.tx_id),
                *map(I64, numbers),
                hashlib.sha256(row.record.canonical()).digest(),
                S(row.signer),
                S(row.sig),
            )
        )
    ).hexdigest()
