"""The payer's own book: tickets it opened, accounts as their targets told them, vouchers.

It is in the node's database: what was written survives the end of the process, a power cut may take the last
seconds. What is lost then is the payer's word on a ticket, which its deadline ends without it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, Literal, TypeVar

import msgspec

from relaydesk.core.errors import EnvError
from relaydesk.core.ledger.paid import PaidTicket
from relaydesk.core.relay.ref import NodeRef
from relaydesk.store.db import Database

T = TypeVar("T")
VoucherState = Literal["waiting", "redeemed", "refused"]

_VOUCHERS: Final = "SELECT voucher, operator, node, state, amount, reason, ended_ms FROM paid_vouchers"
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(PaidTicket)


class PaidAccount(msgspec.Struct, frozen=True):
    """How our account at ``ref`` stood; what is ``open`` and ``waiting`` we know ourselves."""

    ref: NodeRef
    payer: str
    balance: int = 0
    held: int = 0
    told_ms: int = 0
    open: int = 0
    waiting: int = 0


class PaidVoucher(msgspec.Struct, frozen=True):
    """A voucher that was handed in, by the hash of its code. ``reason``: why its target refused it."""

    voucher: str
    ref: NodeRef
    state: VoucherState
    amount: int = 0
    reason: str = ""
    ended_ms: int = 0


class PaidBook:
    """The book inside one transaction."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def keep(self, ticket: PaidTicket) -> None:
        """Write a ticket down, or what became of it."""
        self._conn.execute(
            "INSERT INTO paid_tickets (tx_id, operator, node, state, opened_ms, ticket)"
            " VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (tx_id) DO UPDATE SET state = excluded.state, ticket = excluded.ticket",
            (
                ticket.tx_id,
                str(ticket.open.operator),
                str(ticket.open.node),
                ticket.state,
                ticket.opened_ms,
                _ENCODER.encode(ticket),
            ),
        )

    def ticket(self, tx_id: str) -> PaidTicket | None:
        """A ticket by its transaction."""
        query = "SELECT ticket FROM paid_tickets WHERE tx_id = ?"
        found = self._conn.execute(query, (tx_id,)).fetchone()
        return None if found is None else _read(found[0])

    def waiting(self, ref: NodeRef, limit: int) -> tuple[PaidTicket, ...]:
        """What a target is to be told, oldest first."""
        found = self._conn.execute(
            "SELECT ticket FROM paid_tickets WHERE operator = ? AND node = ? AND state = 'waiting'"
            " ORDER BY opened_ms, tx_id LIMIT ?",
            (*_key(ref), limit),
        )
        return tuple(_read(body) for (body,) in found)

    def tickets(self, ref: NodeRef) -> tuple[PaidTicket, ...]:
        """Every ticket that was opened at a target."""
        found = self._conn.execute(
            "SELECT ticket FROM paid_tickets WHERE operator = ? AND node = ? ORDER BY opened_ms", _key(ref)
        )
        return tuple(_read(body) for (body,) in found)

    def give_up(self, before_ms: int) -> None:
        """Tickets from before a time are over, whatever is still unsaid of them."""
        found = self._conn.execute(
            "SELECT ticket FROM paid_tickets WHERE state IN ('open', 'waiting') AND opened_ms < ?",
            (before_ms,),
        ).fetchall()
        for (body,) in found:
            self.keep(msgspec.structs.replace(_read(body), state="late"))

    def tell(self, account: PaidAccount) -> None:
        """Keep how an account stands."""
        self._conn.execute(
            "INSERT INTO paid_accounts (operator, node, payer, balance, held, told_ms)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (operator, node) DO UPDATE SET payer = excluded.payer,"
            " balance = excluded.balance, held = excluded.held, told_ms = excluded.told_ms",
            (*_key(account.ref), account.payer, account.balance, account.held, account.told_ms),
        )

    def accounts(self) -> tuple[PaidAccount, ...]:
        """Every account that a target told us of, with what is open and waiting at it."""
        found = self._conn.execute(
            "SELECT operator, node, payer, balance, held, told_ms,"
            " (SELECT count(*) FROM paid_tickets t WHERE t.operator = a.operator AND t.node = a.node"
            " AND t.state = 'open'),"
            " (SELECT count(*) FROM paid_tickets t WHERE t.operator = a.operator AND t.node = a.node"
            " AND t.state = 'waiting') + (SELECT count(*) FROM paid_vouchers v"
            " WHERE v.operator = a.operator AND v.node = a.node AND v.state = 'waiting')"
            " FROM paid_accounts a ORDER BY operator, node"
        )
        return tuple(PaidAccount(NodeRef(int(op), int(node)), *rest) for op, node, *rest in found)

    def add_voucher(self, voucher: str, ref: NodeRef, now_ms: int) -> None:
        """A voucher is to go with the next reserve, also one that was refused before."""
        self._conn.execute(
            "INSERT INTO paid_vouchers (voucher, operator, node, state, amount, added_ms)"
            " VALUES (?, ?, ?, 'waiting', 0, ?)"
            " ON CONFLICT (voucher) DO UPDATE SET state = 'waiting', reason = '', ended_ms = 0"
            " WHERE state = 'refused'",
            (voucher, *_key(ref), now_ms),
        )

    def waiting_vouchers(self, ref: NodeRef) -> tuple[str, ...]:
        """The vouchers that a target has not answered yet, oldest first."""
        found = self._conn.execute(
            "SELECT voucher FROM paid_vouchers WHERE operator = ? AND node = ? AND state = 'waiting'"
            " ORDER BY added_ms, voucher",
            _key(ref),
        )
        return tuple(voucher for (voucher,) in found)

    def voucher(self, voucher: str) -> PaidVoucher | None:
        """What became of a voucher; None where it was never handed in."""
        found = self._conn.execute(f"{_VOUCHERS} WHERE voucher = ?", (voucher,)).fetchone()
        return None if found is None else _voucher(found)

    def refused_vouchers(self, after_ms: int, limit: int) -> tuple[PaidVoucher, ...]:
        """What was refused since a time, newest first."""
        found = self._conn.execute(
            f"{_VOUCHERS} WHERE state = 'refused' AND ended_ms > ? ORDER BY ended_ms DESC, voucher LIMIT ?",
            (after_ms, limit),
        )
        return tuple(_voucher(each) for each in found)

    def end_voucher(
        self, voucher: str, state: VoucherState, now_ms: int, *, amount: int = 0, reason: str = ""
    ) -> bool:
        """What a target said of a voucher that waited; whether it did wait."""
        done = self._conn.execute(
            "UPDATE paid_vouchers SET state = ?, amount = ?, reason = ?, ended_ms = ?"
            " WHERE voucher = ? AND state = 'waiting'",
            (state, amount, reason, now_ms, voucher),
        )
        return done.rowcount > 0


class PaidRepo:
    """`PaidBook` over the node's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self, work: Callable[[PaidBook], T]) -> T:
        """Do ``work`` in one transaction."""
        return await self._database.run(lambda conn: work(PaidBook(conn)))

    async def read(self, work: Callable[[PaidBook], T]) -> T:
        """Do ``work`` on a single state of the book."""
        return await self._database.read(lambda conn: work(PaidBook(conn)))


def _voucher(row: tuple[str, str, str, VoucherState, int, str, int]) -> PaidVoucher:
    return PaidVoucher(row[0], NodeRef(int(row[1]), int(row[2])), *row[3:])


def _key(ref: NodeRef) -> tuple[str, str]:
    return str(ref.operator), str(ref.node)


def _read(body: bytes) -> PaidTicket:
    try:
        return _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise EnvError(
            "storage_failed", "a ticket that we paid cannot be read", "restore the database from a backup"
        ) from error
