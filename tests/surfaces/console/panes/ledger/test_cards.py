"""An account, a voucher, and our credit elsewhere as cards."""

from __future__ import annotations

import pytest

from relaydesk.surfaces.console.panes.ledger.pane import card
from relaydesk.surfaces.console.panes.ledger.present import BOOKS
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.ledger_scenes import address, hostile_ledger, ledger
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

VIEW = ledger(NOW_MS)


def _said(book: str, at: int, width: int = 76) -> list[str]:
    found = next(each for each in BOOKS if each.id == book)
    key = found.rows(VIEW, NOW_MS, False)[at].key
    return texts(card(book, key, VIEW, NOW_MS, width))


def test_an_account_has_its_whole_address_and_its_open_tickets() -> None:
    lines = _said("accounts", 4)
    assert lines[:2] == [address("eve"), "eve (night jobs)"]
    assert "2 open tickets" in lines
    (disputed,) = [line for line in lines if line.startswith("▲ disputed")]
    assert disputed.endswith("61,440   held")
    assert f"relaydesk ledger statement {address('eve')}" in " ".join(" ".join(lines).split())
    assert "○ No ticket of it is open." in _said("accounts", 3)


def test_a_voucher_says_that_its_code_is_gone() -> None:
    lines = _said("vouchers", 0)
    assert lines[0] == "2,000,000 microunits"
    assert any("Nobody has redeemed it yet" in line for line in lines)
    assert "expires     in 90 d, 2026-06-12 21:09 UTC" in lines
    assert "✗ Expired: nobody can redeem it any more." in _said("vouchers", 2)


def test_credit_is_as_the_target_told() -> None:
    lines = _said("credit", 0)
    assert "██ can be spent  2,871,300" in lines
    assert any(line.startswith("◐ 1 thing to tell") for line in lines)
    assert address("us at grace") in " ".join(lines)
    assert any("told nothing yet" in line for line in _said("credit", 2))


@pytest.mark.parametrize("width", [20, 44, 58, 78])
def test_no_line_of_any_card_is_wider_than_the_card(width: int) -> None:
    for view in (VIEW, hostile_ledger(NOW_MS)):
        for book in BOOKS:
            for row in book.rows(view, NOW_MS, False):
                for ascii in (False, True):
                    first, *rest = card(book.id, row.key, view, NOW_MS, width, ascii=ascii)
                    assert all(line_width(line) <= width for line in rest), (book.id, rest)
                    assert line_width(first) <= max(width, 44)


def test_what_is_gone_has_no_card() -> None:
    for book in BOOKS:
        assert card(book.id, "nobody", VIEW, NOW_MS, 60) == ()
