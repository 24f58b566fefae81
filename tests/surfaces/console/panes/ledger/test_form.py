"""What is typed before credit is issued or a dispute ended."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.ledger.voucher import MOST_CREDIT
from relaydesk.surfaces.console.panes.ledger import form
from relaydesk.surfaces.console.panes.ledger.words import amount
from tests.surfaces.console.panes.ledger_scenes import ledger
from tests.surfaces.console.stage import NOW_MS

CLAIMS, PROTEST = ledger(NOW_MS).disputes
CODE = "rdv1.12.1." + "a2" * 16


@given(st.integers(1, MOST_CREDIT))
def test_amounts_are_read_as_they_are_shown(value: int) -> None:
    for text in (str(value), amount(value), f" {value} "):
        assert form.parse_amount("amount", text, 1, MOST_CREDIT) == value
        assert form.shown(text) == str(value)


@pytest.mark.parametrize(
    ("text", "value"), [("5M", 5_000_000), ("20k", 20_000), ("0", 0), ("1 500", 1500), ("0.50USD", 500_000)]
)
def test_amounts_in_short(text: str, value: int) -> None:
    assert form.parse_amount("earned", text, 0, 10**9) == value
    assert form.shown(text) == str(value)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e6", "٣", "five", "99999999999999999999", "0"])
def test_what_is_no_amount_is_refused_by_the_fields_name(text: str) -> None:
    with pytest.raises(LocalError) as caught:
        form.parse_amount("amount", text, 1, MOST_CREDIT)
    assert caught.value.fault.message.startswith("amount: ")


def test_issuing() -> None:
    assert form.issued(("5M", "30d", "ann"), NOW_MS) == (5_000_000, NOW_MS + 30 * 86_400_000, "ann")
    assert form.issued(("7", "", ""), NOW_MS) == (7, 0, "")
    line = form.issue_line(("5M", "30d", "ann, autumn"))
    assert line == "relaydesk ledger credit 5000000 --expires 30d --note 'ann, autumn'"
    assert form.issue_line(()) == "relaydesk ledger credit AMOUNT"
    with pytest.raises(LocalError, match="expires"):
        form.issued(("7", "soon", ""), NOW_MS)


def test_what_became_of_a_voucher_is_said() -> None:
    done = {"state": "redeemed", "amount": 5_000, "before": False}
    assert form.handed_in("1:2", done) == "1:2 credited 5,000 microunits"
    assert "redeemed before: it brought 5,000 at 1:2" in form.handed_in("1:2", done | {"before": True})
    assert form.handed_in("1:2", {"state": "waiting"}).startswith("The voucher waits for 1:2")


def test_a_dispute_begins_at_the_receipt() -> None:
    assert form.resolve_fields(CLAIMS)[0].value == "48210"
    assert form.resolve_fields(PROTEST)[0].value == "0"
    assert form.most_earned(PROTEST) == 0
    assert form.most_earned(msgspec.structs.replace(CLAIMS, claimed=3)) == 3


def test_a_code_is_read_with_blanks_around_it_and_never_repeated() -> None:
    assert form.code(f"  {CODE.upper()}\n") == CODE
    with pytest.raises(LocalError) as caught:
        form.code(CODE[:-1])
    assert "a2a2" not in caught.value.fault.sentence
