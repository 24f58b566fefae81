"""Every order of steps over one ticket: what moves adds up, and it ends once."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.ledger import ticket as rules
from relaydesk.core.ledger.records import Claim, Protest, Values
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.ticket import LIVE, Step, Ticket, fee_of
from tests.support.ledger_rig import NODE, OPERATOR, VALUES, ticket_id

TX = "A" * 52
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("receipt", "file", "claim", "protest", "lapse", "early", "resolve")),
        st.integers(0, 4),
    ),
    max_size=9,
)


def fresh(max_price: int = 6, fee_bps: int = 5000) -> Ticket:
    return Ticket(TX, ticket_id(1), "payer", "m", max_price, 1000, 0, fee_bps=fee_bps, grace_s=600)


def values(amount: int) -> Values:
    return msgspec.structs.replace(VALUES, amount=amount)


def step(ticket: Ticket, kind: str, amount: int) -> Step:
    payers = Claim(TX, ticket.ticket_id, "payer", values(amount))
    nodes = Claim(TX, ticket.ticket_id, "node", values(amount))
    protest = Protest(TX, ticket.ticket_id, 1, f"{amount:064x}")
    return {
        "receipt": lambda: rules.note_receipt(ticket, nodes, NODE, 5),
        "file": lambda: rules.file_receipt(ticket, NODE, 5),
        "claim": lambda: rules.take_claim(ticket, payers, "sig", NODE, 5),
        "protest": lambda: rules.take_protest(ticket, protest, "sig", NODE, 5),
        "lapse": lambda: rules.lapse(ticket, NODE, 1600, 5),
        "early": lambda: rules.lapse(ticket, NODE, 1599, 5),
        "resolve": lambda: rules.resolve(ticket, amount, OPERATOR, 5),
    }[kind]()


@given(STEPS)
def test_in_any_order(steps: list[tuple[str, int]]) -> None:
    ticket, held, moved = fresh(), 6, 0
    for kind, amount in steps:
        try:
            found = step(ticket, kind, amount)
        except LedgerRefusal:
            continue
        assert (found.ticket == ticket) == (not found.entries)
        for entry in found.entries:
            assert entry.balance + entry.held + entry.earned + entry.fee == entry.issued == 0
            assert min(entry.balance, entry.earned, entry.fee) >= 0
            held += entry.held
            moved += entry.held != 0
        assert found.ticket.held == held
        if ticket.state not in LIVE and ticket.state != "frozen":
            assert not found.entries
        ticket = found.ticket
    assert moved <= 1
    ended = ticket.state not in LIVE and ticket.state != "frozen"
    assert (ticket.ended_ms > 0) == ended == (held == 0)
    assert ticket.amount + ticket.fee <= 6


@given(st.integers(0, 2**53), st.integers(0, 2000))
def test_the_fee_never_exceeds_what_the_price_foresees(amount: int, fee_bps: int) -> None:
    # max_price = amount + ceil(amount × bps / 10000) (wire §4.3)
    assert fee_of(amount, fee_bps) <= -(-amount * fee_bps // 10_000)


def test_a_claim_of_another_ticket() -> None:
    other = Claim("B" * 52, ticket_id(1), "payer", VALUES)
    with pytest.raises(LedgerRefusal, match="other_ticket"):
        rules.take_claim(fresh(), other, "sig", NODE, 5)
    with pytest.raises(LedgerRefusal, match="other_ticket"):
        rules.note_receipt(fresh(), Claim(TX, ticket_id(2), "node", VALUES), NODE, 5)


def test_a_receipt_after_a_protest_is_evidence_only() -> None:
    frozen = step(fresh(), "protest", 0).ticket
    noted = step(frozen, "receipt", 3)
    assert [entry.kind for entry in noted.entries] == ["receipt"]
    assert noted.ticket.state == "frozen"
    with pytest.raises(LedgerRefusal, match="over_price"):
        step(noted.ticket, "resolve", 4)
    assert step(noted.ticket, "resolve", 3).ticket.amount == 3
    assert step(frozen, "resolve", 0).ticket.state == "resolved"
