"""The target's books in a database of their own, synced at every commit.

`LedgerRepo.run` gives a piece of work the open `Books` inside one transaction: it is done whole or not at
all, whatever ends the process. The rules are in ``core/ledger``; here is only what is kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from relaydesk.core.errors import EnvError
from relaydesk.core.ledger.account import Account, Row, new_account, post
from relaydesk.core.ledger.records import AnyRecord, VoucherRecord
from relaydesk.core.ledger.statement import MOST_ROWS
from relaydesk.core.ledger.ticket import Entry, Step, Ticket
from relaydesk.core.relay.ref import NodeRef
from relaydesk.store.db import Database
from relaydesk.store.ledger_sums import LedgerReader
from relaydesk.store.migrate import migrations

T = TypeVar("T")

_STEPS: Final = Path(__file__).parent / "sql" / "ledger"
_ENCODER: Final = msgspec.json.Encoder()
_TICKET: Final = msgspec.json.Decoder(Ticket)
_RECORD: Final = msgspec.json.Decoder(AnyRecord)
_ROW_COLUMNS: Final = (
    "seq, at_ms, kind, tx_id, balance_change, held_change, earned, fee, issued, balance, held, "
    "record, signer, sig, prev, hash"
)


class StoredVoucher(msgspec.Struct, frozen=True):
    """A voucher, its operator's signature, and who redeemed it (empty: nobody yet)."""

    record: VoucherRecord
    signer: str
    sig: str
    note: str = ""
    payer: str = ""


class Books(LedgerReader):
    """The books of node ``ref`` inside one transaction."""

    def __init__(self, conn: sqlite3.Connection, ref: NodeRef) -> None:
        super().__init__(conn)
        self._ref = ref

    def account(self, address: str) -> Account:
        """An account; one that nothing was booked to is empty."""
        found = self._conn.execute(
            "SELECT balance, held, seq, head FROM accounts WHERE address = ?", (address,)
        ).fetchone()
        return new_account(self._ref, address) if found is None else Account(address, *found)

    def ticket(self, tx_id: str) -> Ticket | None:
        """The ticket that a transaction opened."""
        found = self._conn.execute("SELECT ticket FROM tickets WHERE tx_id = ?", (tx_id,)).fetchone()
        return None if found is None else _read_ticket(found[0])

    def has_ticket(self, ticket_id: str) -> bool:
        """Whether any transaction opened this ticket."""
        query = "SELECT 1 FROM tickets WHERE ticket_id = ?"
        return self._conn.execute(query, (ticket_id,)).fetchone() is not None

    def live_tickets(self) -> tuple[Ticket, ...]:
        """Every ticket that has not ended, frozen ones among them."""
        query = "SELECT ticket FROM tickets WHERE state IN ('open', 'pending_settle', 'frozen')"
        return tuple(_read_ticket(body) for (body,) in self._conn.execute(query))

    def keep(self, step: Step, at_ms: int) -> None:
        """Write down what became of a ticket: the ticket, and a row for each entry in its payer's account.

        Raises `LedgerRefusal` where the account does not allow it.
        """
        ticket = step.ticket
        if ticket.payer:
            self.book(ticket.payer, step.entries, at_ms)
        self._conn.execute(
            "INSERT INTO tickets (tx_id, ticket_id, payer, model, state, held, amount, fee, max_price,"
            " ended_ms, ticket) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tx_id) DO UPDATE SET"
            " state = excluded.state, held = excluded.held, amount = excluded.amount, fee = excluded.fee,"
            " ended_ms = excluded.ended_ms, ticket = excluded.ticket",
            (
                ticket.tx_id,
                ticket.ticket_id,
                ticket.payer,
                ticket.model,
                ticket.state,
                ticket.held,
                ticket.amount,
                ticket.fee,
                ticket.max_price,
                ticket.ended_ms,
                _ENCODER.encode(ticket),
            ),
        )
        if ticket.ended_ms and step.entries:
            self.add_earning(ticket)

    def book(self, address: str, entries: tuple[Entry, ...], at_ms: int) -> None:
        """Add rows to an account."""
        if not entries:
            return
        account, rows = self.account(address), []
        for entry in entries:
            account, row = post(account, entry, at_ms)
            rows.append(row)
        issued, earned, fees = (
            sum(getattr(row, name) for row in rows) for name in ("issued", "earned", "fee")
        )
        self._conn.execute(
            "INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (address) DO UPDATE SET"
            " balance = excluded.balance, held = excluded.held, spent = spent + excluded.spent,"
            " seq = excluded.seq, head = excluded.head",
            (address, account.balance, account.held, earned + fees, account.seq, account.head),
        )
        self.add_sums(issued, earned, fees)
        for row in rows:
            cells = [
                _ENCODER.encode(value) if name == "record" else value
                for name, value in msgspec.structs.asdict(row).items()
            ]
            marks = ", ".join("?" * (len(cells) + 1))
            self._conn.execute(
                f"INSERT INTO rows (account, {_ROW_COLUMNS}) VALUES ({marks})", (address, *cells)
            )

    def rows(self, address: str, after: int = 0, limit: int = MOST_ROWS) -> tuple[Row, ...]:
        """An account's rows after number ``after``, oldest first."""
        found = self._conn.execute(
            f"SELECT {_ROW_COLUMNS} FROM rows WHERE account = ? AND seq > ? ORDER BY seq LIMIT ?",
            (address, after, limit),
        )
        return tuple(Row(*(*each[:11], _RECORD.decode(each[11]), *each[12:])) for each in found)

    def signers(self, address: str) -> tuple[tuple[str, str], ...]:
        """Who but the payer signed rows of an account, and the kind of row, each pair once."""
        query = "SELECT DISTINCT signer, kind FROM rows WHERE account = ? AND signer <> account"
        return tuple(self._conn.execute(query, (address,)))

    def put_voucher(self, voucher: StoredVoucher) -> None:
        """Keep a new voucher."""
        record = voucher.record
        self._conn.execute(
            "INSERT INTO vouchers (voucher, amount, issued_ms, expires_ms, note, signer, sig)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                record.voucher,
                record.amount,
                record.issued_ms,
                record.expires_ms,
                voucher.note,
                voucher.signer,
                voucher.sig,
            ),
        )

    def voucher(self, voucher: str) -> StoredVoucher | None:
        """A voucher by its hash."""
        found = self._conn.execute(
            "SELECT amount, issued_ms, expires_ms, signer, sig, note, payer FROM vouchers WHERE voucher = ?",
            (voucher,),
        ).fetchone()
        if found is None:
            return None
        record = VoucherRecord(voucher, self._ref.operator, self._ref.node, *found[:3])
        return StoredVoucher(record, *found[3:])

    def spend_voucher(self, voucher: str, payer: str, at_ms: int) -> None:
        """Note who redeemed a voucher."""
        self._conn.execute(
            "UPDATE vouchers SET payer = ?, redeemed_ms = ? WHERE voucher = ? AND payer = ''",
            (payer, at_ms, voucher),
        )

    def forget_free(self, before_ms: int) -> int:
        """Drop tickets that nothing was paid for and that ended before a time.

        An account's rows of them stay, and so do all sums.
        """
        return self._conn.execute(
            "DELETE FROM tickets WHERE amount = 0 AND fee = 0 AND ended_ms > 0 AND ended_ms < ?", (before_ms,)
        ).rowcount


class LedgerRepo:
    """The database. `open` before use."""

    def __init__(self, path: Path, ref: NodeRef, *, busy_s: float = 5.0) -> None:
        self._database = Database(path, synchronous="FULL", busy_s=busy_s, steps=migrations(_STEPS))
        self._ref = ref

    async def open(self) -> None:
        """Open the file and check that its sums agree. Raises `EnvError` ``storage_failed``."""
        await self._database.open()
        try:
            await self.read(_check)
        except BaseException:
            await self._database.close()
            raise

    async def close(self) -> None:
        """Finish what was handed over, then close. May be called twice."""
        await self._database.close()

    async def run(self, work: Callable[[Books], T]) -> T:
        """Do ``work`` in one transaction, on the disk when this returns. What it raises undoes all of it."""
        return await self._database.run(lambda conn: work(Books(conn, self._ref)))

    async def read(self, work: Callable[[Books], T]) -> T:
        """Do ``work`` on a single state of the books."""
        return await self._database.read(lambda conn: work(Books(conn, self._ref)))


def _check(books: Books) -> None:
    found = books.mismatch()
    if found:
        raise EnvError(
            "storage_failed",
            f"the ledger's sums do not agree: {found}",
            "restore the ledger from a backup; it was not touched",
        )


def _read_ticket(body: bytes) -> Ticket:
    try:
        return _TICKET.decode(body)
    except msgspec.MsgspecError as error:
        raise EnvError(
            "storage_failed", "a ticket of the ledger cannot be read", "restore the ledger from a backup"
        ) from error
