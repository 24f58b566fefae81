"""A statement out of the books, under the node's signature."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.ledger.records import Signer
from relaydesk.core.ledger.statement import Statement, StatementHead
from relaydesk.core.relay.records.canonical import b64
from relaydesk.core.relay.ref import NodeRef
from relaydesk.store.ledger import Books

_BY_OPERATOR: Final = frozenset({"redeem", "resolve"})


def statement_of(
    books: Books,
    payer: str,
    ref: NodeRef,
    node: Signer,
    operator: Signer,
    now_ms: int,
    after: int,
    limit: int,
) -> Statement:
    """A payer's account, rows ``after`` up to ``limit``; one that nothing was booked to has none."""
    account, signers = books.account(payer), books.signers(payer)
    head = StatementHead(
        account=payer,
        operator=ref.operator,
        node=ref.node,
        signing=node.address,
        node_keys=_keys(signers, node, by_operator=False),
        operator_keys=_keys(signers, operator, by_operator=True),
        at_ms=now_ms,
        balance=account.balance,
        held=account.held,
        rows=account.seq,
        head=account.head,
    )
    sig = b64(node.sign(head.canonical()))
    return Statement(msgspec.structs.replace(head, sig=sig), books.rows(payer, after, limit))


def _keys(signers: tuple[tuple[str, str], ...], now: Signer, *, by_operator: bool) -> tuple[str, ...]:
    """Every key that signed in a role, the one that does now first."""
    found = {now.address: None}
    for signer, kind in signers:
        if (kind in _BY_OPERATOR) is by_operator:
            found.setdefault(signer)
    return tuple(found)
