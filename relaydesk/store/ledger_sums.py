"""What the ledger's tables come to: sums, lists for people, and whether they agree with one another."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from relaydesk.core.ledger.ticket import Ticket

_DAY_MS: Final = 86_400_000
# What a pane can show and a person can read; sums are over everything.
_SHOWN: Final = 200


class Totals(msgspec.Struct, frozen=True):
    """Sums over every account: ``issued == balance + held + earned + fees`` at all times."""

    issued: int
    balance: int
    held: int
    earned: int
    fees: int


class AccountLine(msgspec.Struct, frozen=True):
    """One account for a list; ``spent`` is what it paid, fees among it."""

    address: str
    balance: int
    held: int
    spent: int
    rows: int
    note: str


class EarningLine(msgspec.Struct, frozen=True):
    """What tickets of a model came to that ended on a day (days since 1970, UTC)."""

    day: int
    model: str
    tickets: int
    earned: int
    refunded: int


class VoucherLine(msgspec.Struct, frozen=True):
    """A voucher that was not redeemed."""

    voucher: str
    amount: int
    issued_ms: int
    expires_ms: int
    note: str


class LedgerReader:
    """Questions to the books inside one transaction."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def totals(self) -> Totals:
        """The sums as they are kept beside the rows, and of the accounts."""
        balance, held = self._conn.execute(
            "SELECT coalesce(sum(balance), 0), coalesce(sum(held), 0) FROM accounts"
        ).fetchone()
        issued, earned, fees = self._conn.execute("SELECT issued, earned, fees FROM sums").fetchone()
        return Totals(issued, balance, held, earned, fees)

    def add_sums(self, issued: int, earned: int, fees: int) -> None:
        """Count what rows brought in."""
        self._conn.execute(
            "UPDATE sums SET issued = issued + ?, earned = earned + ?, fees = fees + ?",
            (issued, earned, fees),
        )

    def add_earning(self, ticket: Ticket) -> None:
        """Count a ticket that has just ended."""
        self._conn.execute(
            "INSERT INTO earnings VALUES (?, ?, 1, ?, ?) ON CONFLICT (day, model) DO UPDATE SET"
            " tickets = tickets + 1, earned = earned + excluded.earned,"
            " refunded = refunded + excluded.refunded",
            (
                ticket.ended_ms // _DAY_MS,
                ticket.model,
                ticket.amount,
                ticket.max_price - ticket.amount - ticket.fee,
            ),
        )

    def mismatch(self) -> str:
        """Which sums disagree, as a few words; empty where all agree. Reads everything."""
        sums = self.totals()
        counted = self._conn.execute(
            "SELECT coalesce(sum(issued), 0), coalesce(sum(earned), 0), coalesce(sum(fee), 0),"
            " coalesce(sum(balance_change), 0), coalesce(sum(held_change), 0) FROM rows"
        ).fetchone()
        if counted != (sums.issued, sums.earned, sums.fees, sums.balance, sums.held):
            return "the rows come to other amounts than the accounts"
        if sums.issued != sums.balance + sums.held + sums.earned + sums.fees:
            return "balances, holds and earnings are not what was issued"
        amount, fees, held = self._conn.execute(
            "SELECT coalesce(sum(amount), 0), coalesce(sum(fee), 0), coalesce(sum(held), 0) FROM tickets"
        ).fetchone()
        if held != sums.held:
            return "the accounts hold other amounts than the tickets"
        if (amount, fees) != (sums.earned, sums.fees):
            return "the rows earned other amounts than the tickets"
        (redeemed,) = self._conn.execute(
            "SELECT coalesce(sum(amount), 0) FROM vouchers WHERE payer <> ''"
        ).fetchone()
        return "" if redeemed == sums.issued else "the rows have other vouchers than were redeemed"

    def accounts(self) -> tuple[AccountLine, ...]:
        """Accounts, the largest first."""
        found = self._conn.execute(
            "SELECT address, balance, held, spent, seq,"
            " coalesce((SELECT group_concat(DISTINCT note) FROM vouchers"
            " WHERE payer = address AND note <> ''), '')"
            " FROM accounts ORDER BY balance + held DESC, address LIMIT ?",
            (_SHOWN,),
        )
        return tuple(AccountLine(*each) for each in found)

    def find_accounts(self, beginning: str) -> tuple[str, ...]:
        """Addresses that begin so, two at most."""
        query = "SELECT address FROM accounts WHERE substr(address, 1, ?) = ? ORDER BY address LIMIT 2"
        found = self._conn.execute(query, (len(beginning), beginning))
        return tuple(address for (address,) in found)

    def earnings(self) -> tuple[EarningLine, ...]:
        """Days, the newest first, and models of each."""
        found = self._conn.execute(
            "SELECT day, model, tickets, earned, refunded FROM earnings"
            " ORDER BY day DESC, earned DESC, model LIMIT ?",
            (_SHOWN,),
        )
        return tuple(EarningLine(*each) for each in found)

    def open_vouchers(self) -> tuple[VoucherLine, ...]:
        """Vouchers that nobody redeemed yet, the newest first."""
        found = self._conn.execute(
            "SELECT voucher, amount, issued_ms, expires_ms, note FROM vouchers WHERE payer = ''"
            " ORDER BY issued_ms DESC LIMIT ?",
            (_SHOWN,),
        )
        return tuple(VoucherLine(*each) for each in found)
