"""The books as lists: accounts, open tickets, disputes, earnings, vouchers, and our credit elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from relaydesk.core.view.ledger import (
    AccountView,
    CreditView,
    EarningView,
    LedgerView,
    TicketView,
    VoucherView,
)
from relaydesk.core.view.network import NetworkView
from relaydesk.surfaces.console.panes.keys.present import age, until
from relaydesk.surfaces.console.panes.ledger.words import amount, day, left
from relaydesk.surfaces.console.panes.prose import sentence
from relaydesk.surfaces.console.panes.refs import short_ref, shortened
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import Notice, clock_time
from relaydesk.surfaces.console.widgets.bar import Part, stacked_bar
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import line_text

BAR: Final = 10
OFF: Final = Notice(
    "This node takes no part in the relay network, so it keeps no books.",
    "set RELAY_NETWORK=on and RELAY_DIRECTORIES, then restart the node",
)
EMPTY: Final = Notice(
    "Nobody has credit here yet, and this node has none elsewhere.",
    "a makes a voucher for somebody, r hands in one that you were given",
)
# Without anybody's claim this near its deadline a ticket is about to be paid back.
_SOON_MS: Final = 120_000
_DAY_MS: Final = 86_400_000


def _amount(key: str, title: str, priority: int = 1) -> Column:
    return Column(key, title, width=13, min_width=10, align="right", priority=priority, descending=True)


class Book(NamedTuple):
    """One list: its name, columns, how many rows it has, what it says without any, and its rows."""

    id: str
    title: str
    columns: tuple[Column, ...]
    empty: str
    count: Callable[[LedgerView], int]
    rows: Callable[[LedgerView, int, bool], tuple[Row, ...]]


class State(NamedTuple):
    """What a ticket has come to, as a tone and a word."""

    tone: str
    word: str

    @property
    def text(self) -> str:
        """The word behind its symbol."""
        return f"{MARKS[self.tone]} {self.word}"


def notice(ledger: LedgerView, network: NetworkView | None) -> Notice | None:
    """What to say where there is nothing in the books; None where there is something."""
    if ledger != LedgerView():
        return None
    if network is not None and not network.on:
        return OFF
    if network is not None and network.problem:
        said = f"The books stay closed, since the relay network is not up: {sentence(network.problem)}"
        return Notice(said, "7 shows the network and what is missing")
    return EMPTY


def ticket_state(ticket: TicketView) -> State:
    """Who has said what it came to."""
    if ticket.state == "frozen":
        return State("warn", "disputed")
    if ticket.state == "pending_settle":
        return State("warn", "payer only") if ticket.claimed is None else State("ok", "claimed")
    return State("info", "open") if ticket.claimed is None else State("ok", "answered")


def accounts(ledger: LedgerView, _now_ms: int, _ascii: bool) -> tuple[Row, ...]:
    """Who has credit here, the richest first as the node has them."""
    return tuple(_account(each) for each in ledger.accounts)


@lru_cache(maxsize=1024)
def _account(each: AccountView) -> Row:
    return Row(
        each.address,
        (
            Cell(shortened(each.address), "strong"),
            _money(each.balance, "strong"),
            _money(each.held, "info"),
            _money(each.spent),
            Cell(each.note, "dim"),
            Cell(str(each.rows), "dim", each.rows),
            Cell(each.address, "dim"),
        ),
    )


def tickets(ledger: LedgerView, now_ms: int, _ascii: bool) -> tuple[Row, ...]:
    """Open tickets, the newest first."""
    return tuple(_ticket(each, _left(each, now_ms)) for each in ledger.open_tickets)


@lru_cache(maxsize=1024)
def _ticket(each: TicketView, time_left: Cell) -> Row:
    state = ticket_state(each)
    return Row(
        each.tx_id,
        (
            Cell(state.text, state.tone, state.word),
            Cell(each.model, "strong"),
            Cell(shortened(each.payer) if each.payer else "free", "" if each.payer else "dim"),
            _money(each.max_price),
            _said(each.claimed),
            _said(each.payer_claimed),
            time_left,
            Cell(clock_time(each.opened_at_ms), "dim", each.opened_at_ms),
            Cell(each.tx_id, "dim"),
        ),
    )


def _left(each: TicketView, now_ms: int) -> Cell:
    soon = each.claimed is None and each.deadline_at_ms - now_ms < _SOON_MS
    return Cell(left(each.deadline_at_ms, now_ms), "warn" if soon else "", each.deadline_at_ms)


def disputes(ledger: LedgerView, now_ms: int, _ascii: bool) -> tuple[Row, ...]:
    """Frozen tickets, the newest first."""
    return tuple(_dispute(each, age(each.opened_at_ms, now_ms)) for each in ledger.disputes)


@lru_cache(maxsize=1024)
def _dispute(each: TicketView, since: str) -> Row:
    word = "protest" if each.disputed_by == "protest" else "claims"
    return Row(
        each.tx_id,
        (
            Cell(f"{MARKS['warn']} {word}", "warn", word),
            Cell(each.model, "strong"),
            Cell(shortened(each.payer)),
            _money(each.max_price, "warn"),
            _said(each.claimed),
            _said(each.payer_claimed),
            Cell(since, "dim", each.opened_at_ms),
            Cell(each.tx_id, "dim"),
        ),
    )


def earnings(ledger: LedgerView, _now_ms: int, ascii: bool) -> tuple[Row, ...]:
    """What each model earned on each day; bars are drawn to the most of any."""
    most = max((each.earned for each in ledger.earnings), default=0)
    return tuple(_earning(each, most, ascii=ascii) for each in ledger.earnings)


@lru_cache(maxsize=1024)
def _earning(each: EarningView, most: int, *, ascii: bool) -> Row:
    bar = line_text(stacked_bar((Part("", each.earned),), most, BAR, ascii=ascii)) if most else ""
    return Row(
        earning_key(each),
        (
            Cell(day(each.day), "", each.day),
            Cell(each.model, "strong"),
            _money(each.earned, "ok"),
            Cell(bar, "ok" if each.earned else "faint", each.earned),
            Cell(f"{each.tickets:,}", "", each.tickets),
            _money(each.refunded, "dim"),
        ),
    )


def earning_key(each: EarningView) -> str:
    """The name of a row of earnings."""
    return f"{each.day} {each.model}"


def vouchers(ledger: LedgerView, now_ms: int, _ascii: bool) -> tuple[Row, ...]:
    """What was issued and not redeemed."""
    return tuple(
        _voucher(each, _expires(each.expires_at_ms, now_ms), age(each.issued_at_ms, now_ms))
        for each in ledger.vouchers
    )


@lru_cache(maxsize=1024)
def _voucher(each: VoucherView, expires: Cell, issued: str) -> Row:
    return Row(
        each.id,
        (
            Cell(each.id, "strong"),
            _money(each.amount),
            expires,
            Cell(issued, "dim", -each.issued_at_ms),
            Cell(each.note, "dim"),
        ),
    )


def _expires(at_ms: int, now_ms: int) -> Cell:
    if not at_ms:
        return Cell("never", "dim", float("inf"))
    if at_ms <= now_ms:
        return Cell("expired", "error", at_ms)
    return Cell(until(at_ms, now_ms), "warn" if at_ms - now_ms < 7 * _DAY_MS else "", at_ms)


def credit(ledger: LedgerView, now_ms: int, _ascii: bool) -> tuple[Row, ...]:
    """What this node may spend at others."""
    return tuple(_credit(each, age(each.told_at_ms, now_ms)) for each in ledger.credit)


def credit_key(each: CreditView) -> str:
    """The target, ``operator:node``."""
    return f"{each.operator}:{each.node}"


@lru_cache(maxsize=1024)
def _credit(each: CreditView, told: str) -> Row:
    ref = credit_key(each)
    return Row(
        ref,
        (
            Cell(short_ref(ref), "strong"),
            _money(each.balance, "strong"),
            _money(each.held, "info"),
            Cell(str(each.open), "" if each.open else "dim", each.open),
            Cell(f"{MARKS['info']} {each.waiting}", "info", each.waiting) if each.waiting else _NONE,
            Cell("never" if told == "–" else told, "dim", -each.told_at_ms),
            Cell(shortened(each.payer), "dim"),
            Cell(ref, "dim"),
        ),
    )


_NONE: Final = Cell("0", "dim", 0)


def _money(value: int, tone: str = "") -> Cell:
    return Cell(amount(value), tone if value else "dim", value)


def _said(value: int | None) -> Cell:
    return BLANK if value is None else Cell(amount(value), "", value)


BOOKS: Final = (
    Book(
        "accounts",
        "Accounts",
        (
            Column("account", "ACCOUNT", width=9),
            _amount("balance", "BALANCE", 0),
            _amount("held", "HELD"),
            _amount("spent", "SPENT", 2),
            Column("note", "NOTE", width=18, min_width=14, fill=1, priority=3),
            Column("rows", "ROWS", width=5, align="right", priority=4, descending=True),
            Column("address", "WHOLE ADDRESS", width=44, priority=5),
        ),
        "Nobody has credit here yet: a makes a voucher for somebody.",
        lambda ledger: len(ledger.accounts),
        accounts,
    ),
    Book(
        "tickets",
        "Tickets",
        (
            Column("state", "STATE", width=12),
            Column("model", "MODEL", width=14, min_width=12, fill=2, priority=3),
            Column("payer", "PAYER", width=9, priority=4),
            _amount("price", "PRICE", 0),
            _amount("receipt", "RECEIPT", 1),
            _amount("payer-says", "PAYER SAYS", 5),
            Column("left", "LEFT", width=6, align="right"),
            Column("opened", "OPENED", width=8, priority=6, descending=True),
            Column("tx", "TRANSACTION", width=20, min_width=12, fill=1, priority=7),
        ),
        "No ticket is open: everything that was asked for has ended.",
        lambda ledger: len(ledger.open_tickets),
        tickets,
    ),
    Book(
        "disputes",
        "Disputes",
        (
            Column("about", "ABOUT", width=9),
            Column("model", "MODEL", width=14, min_width=12, fill=2, priority=4),
            Column("payer", "PAYER", width=9, priority=3),
            _amount("held", "HELD", 0),
            _amount("receipt", "RECEIPT", 1),
            _amount("payer-says", "PAYER SAYS", 2),
            Column("since", "OPENED", width=9, priority=5, descending=True),
            Column("tx", "TRANSACTION", width=20, min_width=12, fill=1, priority=6),
        ),
        "Nothing is disputed.",
        lambda ledger: len(ledger.disputes),
        disputes,
    ),
    Book(
        "earnings",
        "Earnings",
        (
            Column("day", "DAY", width=10, descending=True),
            Column("model", "MODEL", width=16, min_width=10, fill=1),
            _amount("earned", "EARNED", 0),
            Column("bar", "", width=BAR, priority=3, descending=True),
            Column("tickets", "TICKETS", width=7, align="right", priority=2, descending=True),
            _amount("refunded", "PAID BACK", 1),
        ),
        "No ticket has ended yet, so nothing was earned.",
        lambda ledger: len(ledger.earnings),
        earnings,
    ),
    Book(
        "vouchers",
        "Vouchers",
        (
            Column("voucher", "VOUCHER", width=8),
            _amount("amount", "AMOUNT", 0),
            Column("expires", "EXPIRES", width=8, priority=1),
            Column("issued", "ISSUED", width=9, priority=3),
            Column("note", "NOTE", width=16, min_width=8, fill=1, priority=2),
        ),
        "Every voucher was redeemed, or none was made: a makes one.",
        lambda ledger: len(ledger.vouchers),
        vouchers,
    ),
    Book(
        "credit",
        "Credit",
        (
            Column("target", "TARGET", width=12),
            _amount("balance", "BALANCE", 0),
            _amount("held", "HELD"),
            Column("open", "OPEN", width=4, align="right", priority=2, descending=True),
            Column("waiting", "TO TELL", width=7, align="right", priority=2, descending=True),
            Column("told", "TOLD US", width=9, priority=3),
            Column("we-are", "WE ARE", width=9, priority=4),
            Column("ref", "WHOLE ID", width=22, priority=5, fill=1),
        ),
        "This node has no credit elsewhere: r hands in a voucher that you were given.",
        lambda ledger: len(ledger.credit),
        credit,
    ),
)
BY_ID: Final = {book.id: book for book in BOOKS}
