"""Statements there and back, and that whatever is changed in one is found and named."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.codec import encode
from relaydesk.core.ledger.account import hash_of
from relaydesk.core.ledger.compare import compare
from relaydesk.core.ledger.statement import Statement, fault_in, read_statement, to_csv
from tests.support.ledger_rig import ANN, VALUES, LedgerRig, claim_request, protest_request


async def made(directory: Path) -> tuple[Statement, Statement]:
    rig = LedgerRig(directory)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 1000)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    await ledger.settle(claim_request(tx_id, terms.ticket_id, VALUES, ANN))
    earlier = await ledger.statement(ANN.address)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.protest(protest_request(tx_id, terms.ticket_id, ANN))
    await ledger.resolve(tx_id, 0)
    tx_id, _ = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    rig.clock.advance(900)
    await ledger.due()
    later = await ledger.statement(ANN.address)
    await rig.close()
    return earlier, later


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Statement, Statement]:
    return asyncio.run(made(tmp_path_factory.mktemp("ledger")))


def test_there_and_back(pair: tuple[Statement, Statement]) -> None:
    for statement in pair:
        assert fault_in(statement) == ""
        assert read_statement(to_csv(statement)) == statement
        assert read_statement("a line before\n" + encode(statement).decode() + "\n") == statement
    kinds = {row.kind for row in pair[1].rows}
    assert kinds == {"redeem", "open", "receipt", "claim", "settle", "protest", "freeze", "resolve", "lapse"}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "# relaydesk statement {}", "seq,at_ms\n1,2", '{"rows": [1]}']
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"statement|columns"):
        read_statement(text)


def altered(row: Any, name: str) -> Any:
    value = getattr(row, name)
    if name == "record":
        return msgspec.structs.replace(row, record=_other(value))
    if name == "kind":
        return msgspec.structs.replace(row, kind="claim" if value != "claim" else "open")
    changed = value + 1 if isinstance(value, int) else ("0" if value[:1] != "0" else "1") + value[1:]
    return msgspec.structs.replace(row, **{name: changed})


def _other(record: Any) -> Any:
    if hasattr(record, "values"):
        return msgspec.structs.replace(record, values=msgspec.structs.replace(record.values, amount=1))
    name = next(name for name in ("amount", "max_price", "body_hash") if hasattr(record, name))
    value = getattr(record, name)
    return msgspec.structs.replace(record, **{name: value + 1 if isinstance(value, int) else "0" * 64})


def test_a_change_to_any_cell_is_found_and_named(pair: tuple[Statement, Statement]) -> None:
    statement = pair[1]
    for at, row in enumerate(statement.rows):
        for name in row.__struct_fields__:
            changed = altered(row, name)
            rows = (*statement.rows[:at], changed, *statement.rows[at + 1 :])
            broken = Statement(statement.statement, rows)
            assert fault_in(broken).startswith(f"row {at + 1}:"), (row.kind, name)
            found = compare(statement, broken)
            assert found.difference is not None
            assert (found.same, found.difference.row) == (at, at + 1)
            assert found.difference.field.partition(".")[0] == name


def test_a_change_is_found_also_where_every_hash_was_made_anew(pair: tuple[Statement, Statement]) -> None:
    """Whoever forges rows and chains them again still lacks the signatures."""
    statement = pair[1]
    for name in ("balance_change", "held_change", "earned", "signer", "sig", "record", "tx_id", "kind"):
        for at, row in enumerate(statement.rows):
            rows, prev = list(statement.rows[:at]), row.prev
            for each in (altered(row, name), *statement.rows[at + 1 :]):
                linked = msgspec.structs.replace(each, prev=prev)
                rows.append(msgspec.structs.replace(linked, hash=hash_of(linked)))
                prev = rows[-1].hash
            head = msgspec.structs.replace(statement.statement, head=prev)
            assert fault_in(Statement(head, tuple(rows))) != "", (row.kind, name)


def test_rows_that_are_missing_or_more(pair: tuple[Statement, Statement]) -> None:
    earlier, later = pair
    for rows in (later.rows[:-1], later.rows[1:], (*later.rows, later.rows[-1]), later.rows[::-1]):
        assert fault_in(Statement(later.statement, rows)) != ""
    forged = msgspec.structs.replace(later.statement, balance=later.statement.balance + 1)
    assert "head" in fault_in(Statement(forged, later.rows))
    late = msgspec.structs.replace(later.statement, at_ms=1)
    assert "signature over the whole" in fault_in(Statement(late, later.rows))
    found = compare(earlier, later)
    assert (found.same, found.more, found.difference) == (len(earlier.rows), -8, None)
    found = compare(later, earlier)
    assert (found.same, found.more, found.difference) == (len(earlier.rows), 8, None)


def test_statements_of_different_accounts(pair: tuple[Statement, Statement]) -> None:
    other = Statement(msgspec.structs.replace(pair[0].statement, node=77), pair[0].rows)
    found = compare(pair[0], other)
    assert found.difference is not None
    assert found.difference.sentence == "the head: node is 2 in the first and 77 in the second"
