from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.ledger.account import BooksBrokenError, hash_of, new_account, post, start_of
from relaydesk.core.ledger.records import MOST, Redemption
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.ticket import Entry
from tests.support.ledger_rig import ANN, BOB, REF

RECORD = Redemption("ab" * 32, ANN.address, 5, 7)


def entry(**moves: int) -> Entry:
    return Entry("redeem", RECORD, "signer", "sig", **moves)


def test_rows_are_chained() -> None:
    account, first = post(new_account(REF, ANN.address), entry(balance=5, issued=5), 1)
    account, second = post(account, entry(balance=-2, held=2), 2)
    assert (first.prev, second.prev) == (start_of(REF, ANN.address), first.hash)
    assert (account.balance, account.held, account.seq, account.head) == (3, 2, 2, second.hash)
    assert start_of(REF, ANN.address) != start_of(REF, BOB.address)
    assert start_of(REF, ANN.address) != start_of(REF._replace(node=9), ANN.address)


def test_every_column_is_in_the_hash() -> None:
    _, row = post(new_account(REF, ANN.address), entry(balance=5, issued=5), 1)
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if name in ("hash",):
            continue
        other = RECORD.__class__("cd" * 32, ANN.address, 5, 7) if name == "record" else None
        other = other or (value + 1 if isinstance(value, int) else value + "x")
        assert hash_of(msgspec.structs.replace(row, **{name: other})) != row.hash, name


@pytest.mark.parametrize(
    "moves",
    [
        {"balance": 5},
        {"held": -1, "balance": 1},
        {"earned": -1, "balance": 1},
        {"fee": -1, "balance": 1},
        {"issued": -1, "balance": -1},
    ],
)
def test_what_breaks_the_books(moves: dict[str, int]) -> None:
    account, _ = post(new_account(REF, ANN.address), entry(balance=9, issued=9), 1)
    with pytest.raises(BooksBrokenError):
        post(account, entry(**moves), 2)


def test_what_an_account_refuses() -> None:
    account = new_account(REF, ANN.address)
    with pytest.raises(LedgerRefusal, match="not_enough_credit"):
        post(account, entry(balance=-1, held=1), 1)
    account, _ = post(account, entry(balance=MOST, issued=MOST), 1)
    with pytest.raises(LedgerRefusal, match="account_full"):
        post(account, entry(balance=1, issued=1), 1)
