"""The ledger pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult

from relaydesk.core.access.quota import day_of
from relaydesk.core.commands import Command, IssueCredit, Outcome, RedeemCredit, ResolveDispute
from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import LedgerView, TicketView
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import LIST, Action
from relaydesk.surfaces.console.ask import Field
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.list_pane import ListPane
from relaydesk.surfaces.console.panes.keys.reveal import Reveal
from relaydesk.surfaces.console.panes.ledger import cards, earned, form, head, present, tickets
from relaydesk.surfaces.console.panes.ledger.words import UNIT, amount
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.panes.refs import short_ref, shortened
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable
from relaydesk.surfaces.console.widgets.spans import Line, fit_line, line_width

if TYPE_CHECKING:
    from textual import events


# Lines of sums by the least rows of a terminal.
_HEAD: Final = ((32, 3), (24, 2), (0, 1))
_LONGEST_CODE: Final = 200
_ONCE: Final = (
    "This is the only time it is shown. Whoever has it has the credit: relaydesk ledger redeem CODE."
)


class LedgerPane(ListPane):
    """The books of this node, one list at a time."""

    BINDINGS = bindings_for(LIST, "ledger")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        self._book = present.BOOKS[0]
        # Until a list was asked for, or found that holds something.
        self._fresh = True
        # Where the cursor was in lists that are not shown.
        self._places: dict[str, str] = {}

    def compose_body(self) -> ComposeResult:
        yield Made(id="head")
        yield PieceLine(id="views")
        yield ListDetail(LiveTable(self._book.columns, id="list"), Made(id="one"))

    def empty(self, view: NodeView) -> Notice | None:
        ledger = view.ledger.value
        return present.notice(ledger, view.network.value) if ledger is not None else None

    def show(self, view: NodeView) -> None:
        ledger = view.ledger.value
        if ledger is None or self.table is None:
            return
        self._open_first(ledger)
        self.query_one("#head", Made).show(self._head)
        self._show_tabs()
        self._show_rows()
        self.show_detail()

    def tick(self, now_ms: int) -> None:
        if self._ledger is None or self.state.covers:
            return
        self._show_rows()
        if self.query_one(ListDetail).detail_shown:
            self.show_detail()

    def on_resize(self, _event: events.Resize) -> None:
        self._show_tabs()
        self.query_one("#head", Made).update()

    def copied(self) -> str:
        found = self.subject()
        return found if self._book.id != "earnings" else self.row_text()

    # Which list is shown.

    def do_next(self) -> None:
        """The list after this one."""
        self._step(1)

    def do_previous(self) -> None:
        """The list before this one."""
        self._step(-1)

    def do_accounts(self) -> None:
        """Who has credit here."""
        self._open("accounts")

    def do_tickets(self) -> None:
        """What is held, and until when."""
        self._open("tickets")

    def do_disputes(self) -> None:
        """What both sides differ about."""
        self._open("disputes")

    def do_earnings(self) -> None:
        """What was earned."""
        self._open("earnings")

    def do_vouchers(self) -> None:
        """What was issued and not redeemed."""
        self._open("vouchers")

    def do_credit(self) -> None:
        """What this node has elsewhere."""
        self._open("credit")

    # What can be done.

    def reason(self, action: Action) -> str:
        network = self._network
        if action.command is None:
            return ""
        if network is None or not network.on:
            return "the network is off"
        if action.id == "ledger.resolve" and self._dispute is None:
            return "no dispute is selected" if self._disputes else "nothing is disputed"
        return ""

    def weight(self, action: Action) -> int:
        if action.id == "ledger.resolve":
            return 75 if self._dispute is not None else 25
        return action.footer

    def meant(self, action: Action, *answers: str) -> str:
        return self.subject() if action.id == "ledger.resolve" or action.command is None else ""

    def phrase(self, action: Action, *answers: str) -> str:
        if action.id == "ledger.resolve":
            return f"resolve the dispute about {shortened(self.subject())}"
        return "redeem a voucher" if action.id == "ledger.redeem" else action.label

    def fields(self, action: Action) -> tuple[Field, ...]:
        if action.id == "ledger.issue":
            return form.ISSUE
        if action.id == "ledger.redeem":
            return (form.CODE,)
        return form.resolve_fields(self._dispute) if action.id == "ledger.resolve" else ()

    def notes(self, action: Action) -> tuple[str, ...]:
        dispute = self._dispute
        if action.id == "ledger.resolve" and dispute is not None:
            most, price = amount(form.most_earned(dispute)), amount(dispute.max_price)
            return (f"Of {price} that is held at most {most} is earned; the rest goes back to the payer.",)
        return (form.NOTE,) if action.id == "ledger.issue" else ()

    def request(self, action: Action, *answers: str) -> Command:
        match action.id.partition(".")[2]:
            case "issue":
                value, expires_ms, note = form.issued(answers, self.now_ms)
                return IssueCredit(amount=value, expires_ms=expires_ms, note=note)
            case "redeem":
                return RedeemCredit(code=form.code(answers[0]))
            case _:
                dispute = self._dispute
                most = form.most_earned(dispute) if dispute is not None else 0
                earned_of_it = form.parse_amount("earned", answers[0], 0, most)
                return ResolveDispute(tx_id=self.subject(), amount=earned_of_it)

    def cli(self, action: Action, *answers: str) -> str:
        if action.id == "ledger.issue":
            return form.issue_line(answers)
        if action.id == "ledger.resolve":
            typed = form.shown(answers[0]) if answers else ""
            return f"relaydesk ledger resolve {self.subject()} {typed or 'AMOUNT'}"
        return super().cli(action, *answers)

    def answered(self, action: Action, command: Command, outcome: Outcome) -> bool:
        value = outcome.value if isinstance(outcome.value, dict) else {}
        if isinstance(command, IssueCredit) and isinstance(value.get("code"), str):
            title = f"A voucher of {amount(command.amount)} {UNIT}"
            self.app.push_screen(Reveal(title, safe_text(value["code"], _LONGEST_CODE), _ONCE, once=True))
            return True
        if isinstance(command, RedeemCredit) and "operator" in value:
            where = short_ref(f"{value['operator']}:{value.get('node', '')}")
            self.desk.say(form.handed_in(safe_text(where), value), timeout=8)
            return True
        if isinstance(command, ResolveDispute) and isinstance(value.get("refunded"), int):
            said = f"{amount(command.amount)} earned, {amount(value['refunded'])} went back"
            self.desk.say(f"resolved: {said}", timeout=8)
            return True
        return False

    @property
    def _ledger(self) -> LedgerView | None:
        return self.view.ledger.value if self.view is not None else None

    @property
    def _network(self) -> NetworkView | None:
        return self.view.network.value if self.view is not None else None

    @property
    def _disputes(self) -> tuple[TicketView, ...]:
        return self._ledger.disputes if self._ledger is not None else ()

    @property
    def _dispute(self) -> TicketView | None:
        if self._book.id != "disputes":
            return None
        return next((each for each in self._disputes if each.tx_id == self.subject()), None)

    def _step(self, by: int) -> None:
        ids = [book.id for book in present.BOOKS]
        self._open(ids[(ids.index(self._book.id) + by) % len(ids)])

    def _open_first(self, ledger: LedgerView) -> None:
        """Begin with a list that holds something: a payer has no accounts, a target no credit elsewhere."""
        filled = next((book for book in present.BOOKS if book.count(ledger)), None)
        if self._fresh and filled is not None:
            self._open(filled.id)

    def _open(self, name: str) -> None:
        """Show another list, with the cursor where it was there."""
        self._fresh = False
        table = self.table
        if table is None or self._ledger is None or name == self._book.id:
            return
        self.close_detail()
        self._places[self._book.id] = self.subject()
        self._book = present.BY_ID[name]
        table.sort = None
        table.rows = ()
        table.columns = self._book.columns
        self._show_rows()
        if not table.move_to(self._places.get(name, "")):
            table.action_edge(0)
        self._show_tabs()
        self.show_detail()

    def _show_rows(self) -> None:
        ledger, table = self._ledger, self.table
        if ledger is not None and table is not None:
            table.empty = self._book.empty
            table.rows = self._book.rows(ledger, self.now_ms, self.desk.ascii)

    def _show_tabs(self) -> None:
        if self._ledger is not None:
            room = max(1, self.size.width - 2)
            self.query_one("#views", PieceLine).show(head.tabs(self._ledger, self._book.id, room))

    def _head(self, width: int, *_: object) -> tuple[Line, ...]:
        most = next(lines for rows, lines in _HEAD if self.app.size.height >= rows)
        return head.lines(self._ledger or LedgerView(), width, most, ascii=self.desk.ascii)

    def show_detail(self) -> None:
        ledger, key, made = self._ledger, self.subject(), self.query_one("#one", Made)
        if ledger is None or not key:
            made.show(None)
            return
        now_ms, name = self.now_ms, self._book.id
        made.show(lambda width, _height, ascii: card(name, key, ledger, now_ms, width, ascii=ascii))


def card(
    book: str, key: str, ledger: LedgerView, now_ms: int, width: int, *, ascii: bool = False
) -> tuple[Line, ...]:
    """The row of a list with everything that is known of it; nothing where it is gone."""
    made = _card(book, key, ledger, now_ms, width, ascii=ascii)
    # Amounts of any size stand in lines of several pieces, which are not broken.
    return tuple(fit_line(line, width) if line_width(line) > width else line for line in made)


def _card(
    book: str, key: str, ledger: LedgerView, now_ms: int, width: int, *, ascii: bool = False
) -> tuple[Line, ...]:
    match book:
        case "accounts":
            account = next((each for each in ledger.accounts if each.address == key), None)
            return cards.account(account, ledger, now_ms, width, ascii=ascii) if account is not None else ()
        case "tickets" | "disputes":
            found = ledger.open_tickets if book == "tickets" else ledger.disputes
            ticket = next((each for each in found if each.tx_id == key), None)
            return tickets.lines(ticket, now_ms, width) if ticket is not None else ()
        case "earnings":
            earning = next((each for each in ledger.earnings if present.earning_key(each) == key), None)
            today = day_of(now_ms)
            if earning is None:
                return ()
            return earned.lines(earning, ledger.earnings, today, width, ascii=ascii)
        case "vouchers":
            voucher = next((each for each in ledger.vouchers if each.id == key), None)
            return cards.voucher(voucher, now_ms, width) if voucher is not None else ()
        case _:
            credit = next((each for each in ledger.credit if present.credit_key(each) == key), None)
            return cards.credit(credit, now_ms, width, ascii=ascii) if credit is not None else ()
