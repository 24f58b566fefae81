from __future__ import annotations

import pytest

from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.terms import LONGEST_S, Policy, Terms, open_ticket
from tests.support.ledger_rig import ANN, REF, open_request, ticket_id

NOW_MS = 1_700_000_000_000
TERMS = Terms(ticket_id(1), ANN.address, "m", 7, 1_700_000_300)


def test_what_is_fixed_when_it_opens() -> None:
    request, tx_id = open_request(TERMS, ANN)
    step = open_ticket(TERMS, request, tx_id, REF, Policy(500, 60), NOW_MS)
    ticket = step.ticket
    assert (ticket.tx_id, ticket.payer, ticket.fee_bps, ticket.grace_s) == (tx_id, ANN.address, 500, 60)
    assert (ticket.deadline_s, ticket.held) == (1_700_000_360, 7)
    (entry,) = step.entries
    assert (entry.balance, entry.held, entry.signer) == (-7, 7, ANN.address)


def test_free_tickets_have_names_of_their_own() -> None:
    """Nobody takes the transaction that another's open record will have."""
    free = Terms(ticket_id(1), ANN.address, "m", 0, 1_700_000_300)
    _, tx_id = open_request(free, ANN)
    names = {open_ticket(free, None, given, REF, Policy(), NOW_MS).ticket.tx_id for given in (tx_id, "", "x")}
    assert len(names) == 1
    assert tx_id not in names
    with pytest.raises(LedgerRefusal, match="bad_record"):
        open_ticket(Terms("x", "", "m", 0, 1_700_000_300), None, "", REF, Policy(), NOW_MS)


@pytest.mark.parametrize("expires_at", [1_700_000_000 - 600, 1_700_000_001 + LONGEST_S])
def test_times_that_cannot_be(expires_at: int) -> None:
    terms = Terms(ticket_id(1), ANN.address, "m", 0, expires_at)
    with pytest.raises(LedgerRefusal, match="expired"):
        open_ticket(terms, None, "", REF, Policy(), NOW_MS)
