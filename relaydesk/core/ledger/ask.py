"""What a payer asks at the sealed path `/v1/zs/ledger` between two reserves: its account, or to settle.

The question is JSON, signed by the payer for one node and one minute, as a reserve is (wire §4.3).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

import msgspec

from relaydesk.core.ledger.extensions import LedgerNote, Settlements, Signature
from relaydesk.core.ledger.records import Count, Record, check_signature
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import Statement
from relaydesk.core.relay.records.canonical import I64, U64, S
from relaydesk.core.relay.ref import NodeRef

Want = Literal["balance", "statement"]
# Of one answer; what follows is asked for with ``after``.
ROWS: Final = 250
EARLY_S: Final = 30
LATE_S: Final = 90


class AskRecord(Record, frozen=True, tag="ask"):
    """Who asks which node for what, and when (seconds since 1970). Signed by the payer.

    ``after``: a statement's rows after this one.
    """

    domain: ClassVar[bytes] = b"relaydesk-ledger-v1\0"
    want: Want
    payer: str
    operator: int
    node: int
    after: int
    issued_at: int

    def fields(self) -> bytes:
        return (
            S(self.want)
            + S(self.payer)
            + U64(self.operator)
            + U64(self.node)
            + U64(self.after)
            + I64(self.issued_at)
        )


class Ask(msgspec.Struct, frozen=True):
    """The question. ``settle`` is as ``relaydesk_settle``, ``voucher`` as ``relaydesk_voucher``."""

    want: Want
    payer: str
    operator: Annotated[int, msgspec.Meta(ge=0)]
    node: Annotated[int, msgspec.Meta(ge=0)]
    issued_at: Count
    sig: Signature
    after: Count = 0
    voucher: str = ""
    settle: Settlements = []

    @property
    def record(self) -> AskRecord:
        return AskRecord(self.want, self.payer, self.operator, self.node, self.after, self.issued_at)


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer: how the account stands, and the statement where that was wanted."""

    relaydesk_ledger: LedgerNote
    statement: Statement | None = None


def read_ask(data: bytes, ref: NodeRef, now_s: int) -> Ask:
    """A question to node ``ref``, its signature checked.

    Raises `LedgerRefusal`: ``bad_record``, ``bad_signature``, ``expired``.
    """
    try:
        ask = msgspec.json.decode(data, type=Ask)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise LedgerRefusal("bad_record") from error
    if (ask.operator, ask.node) != ref:
        raise LedgerRefusal("bad_record")
    check_signature(ask.payer, ask.record, ask.sig)
    if not now_s - LATE_S <= ask.issued_at <= now_s + EARLY_S:
        raise LedgerRefusal("expired")
    return ask
