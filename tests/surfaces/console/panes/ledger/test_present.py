"""The books as rows."""

from __future__ import annotations

import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import NetworkView
from relaydesk.surfaces.console.panes.ledger import present
from relaydesk.surfaces.console.panes.refs import shortened
from tests.surfaces.console.panes.ledger_scenes import address, hostile_ledger, ledger, transaction
from tests.surfaces.console.stage import NOW_MS

BOOKS = ledger(NOW_MS)


def _cells(book: str, at: int, now_ms: int = NOW_MS) -> dict[str, str]:
    found = present.BY_ID[book]
    row = found.rows(BOOKS, now_ms, False)[at]
    return dict(zip((column.key for column in found.columns), (cell.text for cell in row.cells), strict=True))


def test_an_account() -> None:
    assert _cells("accounts", 0) == {
        "account": shortened(address("ann")),
        "balance": "4,118,240",
        "held": "28,800",
        "spent": "1,822,360",
        "note": "ann, autumn",
        "rows": "812",
        "address": address("ann"),
    }


def test_tickets_say_who_has_said_what_and_how_long_is_left() -> None:
    assert [_cells("tickets", at)["state"] for at in range(6)] == [
        "◐ open", "◐ open", "● answered", "● claimed", "▲ payer only", "◐ open",
    ]  # fmt: skip
    claimed = _cells("tickets", 3)
    assert (claimed["price"], claimed["receipt"], claimed["payer-says"]) == ("28,800", "11,058", "")
    assert (claimed["left"], claimed["tx"]) == ("10:24", transaction("t4"))
    assert _cells("tickets", 3, NOW_MS + 24_000)["left"] == "10:00"
    assert _cells("tickets", 5)["payer"] == "free"
    # Only what nobody has claimed is lost at its deadline.
    rows = present.tickets(BOOKS, NOW_MS, False)
    assert [row.cells[6].tone for row in rows] == ["", "", "", "", "warn", ""]


def test_disputes_say_who_says_what() -> None:
    assert [(_cells("disputes", at)["about"], _cells("disputes", at)["receipt"]) for at in range(2)] == [
        ("▲ claims", "48,210"),
        ("▲ protest", ""),
    ]
    assert _cells("disputes", 0)["payer-says"] == "22,005"


def test_earnings_are_by_day_and_model_with_a_bar_to_the_most() -> None:
    first = _cells("earnings", 0)
    assert (first["day"], first["model"], first["earned"]) == ("2026-03-14", "smollm2", "182,410")
    bars = {_cells("earnings", at)["earned"]: _cells("earnings", at)["bar"] for at in range(21)}
    assert bars["451,700"] == "█" * 10
    assert bars["9,870"] == "█" + "·" * 9


def test_vouchers_and_credit() -> None:
    assert [_cells("vouchers", at)["expires"] for at in range(3)] == ["90 d", "2 d", "expired"]
    assert [_cells("credit", at)["told"] for at in range(3)] == ["just now", "7 h", "never"]
    assert _cells("credit", 0)["waiting"] == "◐ 1"


def test_a_second_later_only_what_counts_down_is_another_row() -> None:
    for book in present.BOOKS:
        before, after = book.rows(BOOKS, NOW_MS, False), book.rows(BOOKS, NOW_MS + 1_000, False)
        same = [one is other for one, other in zip(before, after, strict=True)]
        assert all(same) if book.id != "tickets" else not any(same)


def test_hostile_text_makes_rows() -> None:
    bad = hostile_ledger(NOW_MS)
    for book in present.BOOKS:
        rows = book.rows(bad, NOW_MS, True)
        assert len(rows) == book.count(bad) > 0
        assert all(len(row.cells) == len(book.columns) for row in rows)
        assert len({row.key for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (None, "Nobody has credit here yet"),
        (NetworkView(on=True), "Nobody has credit here yet"),
        (NetworkView(), "takes no part in the relay network"),
        (NetworkView(on=True, problem=safe_text("port 8384 is taken")), "not up: port 8384 is taken."),
    ],
)
def test_nothing_in_the_books_has_a_reason(network: NetworkView | None, words: str) -> None:
    found = present.notice(LedgerView(), network)
    assert found is not None
    assert words in found.sentence
    assert found.action
    assert present.notice(BOOKS, network) is None
