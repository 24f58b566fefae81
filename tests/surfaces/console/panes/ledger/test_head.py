"""The sums of the books, and the lists as tabs."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view.ledger import LedgerView
from relaydesk.surfaces.console.panes.ledger import head
from relaydesk.surfaces.console.panes.ledger.words import amount
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.ledger_scenes import hostile_ledger, ledger
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

BOOKS = ledger(NOW_MS)


def test_the_sums_are_a_line_and_a_bar() -> None:
    said, bar, elsewhere = texts(head.lines(BOOKS, 118, 3))
    for value in (BOOKS.issued, BOOKS.balance, BOOKS.held, BOOKS.earned, BOOKS.fees):
        assert amount(value) in said
    assert said.endswith("microunits")
    assert len(bar) == 118
    assert elsewhere == "elsewhere 3,283,900 to spend at 3 targets  held 48,000  ◐ 2 to tell"
    # Where there is one line, it is this node's.
    assert texts(head.lines(BOOKS, 118, 1)) == [said]


def test_books_that_do_not_add_up_say_nothing_else() -> None:
    off = msgspec.structs.replace(BOOKS, held=BOOKS.held + 1)
    assert texts(head.lines(off, 118, 3))[0].startswith("✗ The books do not add up")


def test_a_payer_alone_has_no_sums_of_its_own() -> None:
    alone = LedgerView(credit=BOOKS.credit)
    (line,) = texts(head.lines(alone, 80, 3))
    assert line.startswith("elsewhere ")


@pytest.mark.parametrize("width", [20, 58, 78, 118])
def test_no_line_is_wider_than_there_is_room(width: int) -> None:
    for view in (BOOKS, hostile_ledger(NOW_MS), LedgerView()):
        assert all(line_width(line) <= width for line in head.lines(view, width, 3))
        assert sum(piece.width for piece in head.tabs(view, "credit", width)) <= width


def test_tabs_lose_their_numbers_before_their_names() -> None:
    wide = "".join(piece.text for piece in head.tabs(BOOKS, "accounts", 118))
    assert wide.split() == [
        "here", "Accounts", "6", "Tickets", "6", "▲", "Disputes", "2", "Earnings", "21", "Vouchers", "3",
        "elsewhere", "Credit", "3",
    ]  # fmt: skip
    narrow = head.tabs(BOOKS, "disputes", 58)
    assert "".join(piece.text for piece in narrow).split() == [
        "Accounts", "Tickets", "Disputes", "Earnings", "Vouchers", "Credit",
    ]  # fmt: skip
    tones = {piece.text.strip(): piece.tone for piece in narrow}
    assert tones["Disputes"] == "pill"
    assert [piece.do for piece in narrow][-1] == "app.run('ledger.credit')"
