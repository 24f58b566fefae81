"""One ticket as a card."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view.ledger import TicketView
from relaydesk.surfaces.console.panes.ledger import tickets
from tests.surfaces.console.panes.ledger_scenes import ledger, transaction
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

VIEW = ledger(NOW_MS)
CLAIMS, PROTEST = VIEW.disputes


def _said(ticket: TicketView) -> str:
    return " ".join(" ".join(texts(tickets.lines(ticket, NOW_MS, 76))).split())


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (0, "At the deadline its whole price goes back to the payer."),
        (2, "lapses at the deadline otherwise: then the receipt's amount is earned."),
        (3, "where nobody answers, the deadline pays the claim."),
        (4, "A payer's word alone pays nobody: at the deadline its whole price goes back."),
    ],
)
def test_an_open_one_says_how_it_goes_on(at: int, words: str) -> None:
    said = _said(VIEW.open_tickets[at])
    assert words in said
    assert "What to do" not in said


def test_time_counts_down_and_a_frozen_one_has_none() -> None:
    first = VIEW.open_tickets[0]
    assert texts(tickets.lines(first, NOW_MS, 76))[0] == "◐ open  11:56 left"
    assert texts(tickets.lines(first, NOW_MS + 60_000, 76))[0] == "◐ open  10:56 left"
    assert "deadline" in _said(first)
    assert "deadline" not in _said(CLAIMS)


def test_a_dispute_says_who_says_what_and_what_to_do() -> None:
    said = _said(CLAIMS)
    assert "▲ disputed 61,440 stays held" in said
    assert "this node 48,210 the payer 22,005" in said
    assert "choose what is earned, 48,210 at most, and the rest goes back. That is final." in said
    assert f"relaydesk ledger resolve {transaction('d1')} 48210" in said


def test_a_protest_without_a_receipt_can_only_be_paid_back() -> None:
    said = _said(PROTEST)
    assert "this node no receipt the payer a protest" in said
    assert "d ends it at 0, and all goes back." in said
    assert f"relaydesk ledger resolve {transaction('d2')} 0" in said


def test_claims_that_differ_in_something_else() -> None:
    same = msgspec.structs.replace(CLAIMS, payer_claimed=CLAIMS.claimed)
    assert "Both sides name one amount, but another value of their claims differs." in _said(same)


def test_a_free_one_has_no_account_to_ask_about() -> None:
    said = _said(VIEW.open_tickets[5])
    assert "nobody signed for it: it is free" in said
    assert "statement" not in said
