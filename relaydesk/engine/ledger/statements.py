"""A statement out of the books, under the node's signature."""

from __future__ import annotations

import msgspec

from relaydesk.core.ledger.account import Row
from relaydesk.core.ledger.records import Claim, Signer
from relaydesk.core.ledger.statement import Statement, StatementHead
from relaydesk.core.relay.records.canonical import b64
from relaydesk.core.relay.ref import NodeRef
from relaydesk.store.ledger import Books

_BY_OPERATOR = frozenset({"redeem", "resolve"})


def statement_of(
    books: Books, payer: str, ref: NodeRef, node: Signer, operator: Signer, now_ms: int
) -> Statement:
    """The whole account of a payer; one that nothing was booked to has no rows."""
    account, rows = books.account(payer), books.rows(payer)
    head = StatementHead(
        account=payer,
        operator=ref.operator,
        node=ref.node,
        signing=node.address,
        node_keys=_signers(rows, node, by_operator=False),
        operator_keys=_signers(rows, operator, by_operator=True),
        at_ms=now_ms,
        balance=account.balance,
        held=account.held,
        rows=account.seq,
        head=account.head,
    )
    sig = b64(node.sign(head.canonical()))
    return Statement(msgspec.structs.replace(head, sig=sig), rows)


def _signers(rows: tuple[Row, ...], now: Signer, *, by_operator: bool) -> tuple[str, ...]:
    """Every key that signed in a role, the one that does now first."""
    found = {now.address: None}
    for row in rows:
        if (row.kind in _BY_OPERATOR) is by_operator and not _by_payer(row):
            found.setdefault(row.signer)
    return tuple(found)


def _by_payer(row: Row) -> bool:
    if isinstance(row.record, Claim):
        return row.record.side == "payer"
    return row.kind in ("open", "protest")
