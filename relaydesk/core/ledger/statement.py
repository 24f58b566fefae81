"""Statements: one account's rows, signed by the node, as JSON and CSV and back; and whether they hold."""

from __future__ import annotations

import csv
import io
from typing import Any, Final

import msgspec

from relaydesk.core.ledger.account import Row, hash_of, start_of, tx_of
from relaydesk.core.ledger.records import AnyRecord, Claim, Closing, OpenRecord, Protest, Redemption
from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.records.canonical import I64, U64, RecordError, S, verify_text
from relaydesk.core.relay.ref import NodeRef

_DOMAIN: Final = b"relaydesk-statement-v1\0"
# Rows of one statement: what is read in one go.
MOST_ROWS: Final = 100_000
COLUMNS: Final = (
    "seq",
    "at_ms",
    "kind",
    "tx_id",
    "balance_change",
    "held_change",
    "earned",
    "fee",
    "issued",
    "balance",
    "held",
    "record",
    "signer",
    "sig",
    "prev",
    "hash",
)
# Which record each kind of row carries, and who signs it.
_RECORDS: Final[dict[str, tuple[type, str]]] = {
    "redeem": (Redemption, "operator"),
    "open": (OpenRecord, "payer"),
    "receipt": (Claim, "node"),
    "claim": (Claim, "side"),
    "protest": (Protest, "payer"),
    "freeze": (Closing, "node"),
    "settle": (Closing, "node"),
    "lapse": (Closing, "node"),
    "refund": (Closing, "node"),
    "resolve": (Closing, "operator"),
}
_HEAD: Final = "# relaydesk statement "


class StatementHead(msgspec.Struct, frozen=True):
    """Whose account at which node, how it stands, and the node's signature over that and the last row.

    ``signing`` is the address of the node's key now; ``node_keys`` and ``operator_keys`` are all that signed
    rows for the node and for its operator: keys are replaced, rows stay.
    """

    account: str
    operator: int
    node: int
    signing: str
    node_keys: tuple[str, ...]
    operator_keys: tuple[str, ...]
    at_ms: int
    balance: int
    held: int
    rows: int
    head: str
    sig: str = ""

    def canonical(self) -> bytes:
        """The bytes the node signs."""
        return b"".join(
            (
                _DOMAIN,
                S(self.account),
                U64(self.operator),
                U64(self.node),
                S(self.signing),
                U64(len(self.node_keys)),
                *map(S, self.node_keys),
                U64(len(self.operator_keys)),
                *map(S, self.operator_keys),
                I64(self.at_ms),
                U64(self.balance),
                U64(self.held),
                U64(self.rows),
                S(self.head),
            )
        )


class Statement(msgspec.Struct, frozen=True):
    """A whole account, oldest row first."""

    statement: StatementHead
    rows: tuple[Row, ...]


def to_csv(statement: Statement) -> str:
    """One comment line with the head as JSON, the names of the columns, then a line for each row."""
    out = io.StringIO()
    out.write(_HEAD + msgspec.json.encode(statement.statement).decode() + "\n")
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    for row in statement.rows:
        record = msgspec.json.encode(row.record).decode()
        lines.writerow([record if name == "record" else getattr(row, name) for name in COLUMNS])
    return out.getvalue()


def read_statement(text: str) -> Statement:
    """A statement out of JSON or CSV as relaydesk writes them. Raises `ValueError` with a reason."""
    try:
        if text.startswith(_HEAD):
            return _from_csv(text)
        return msgspec.json.decode(text.strip().rpartition("\n")[2], type=Statement)
    except (msgspec.MsgspecError, RecursionError, csv.Error) as error:
        raise ValueError(f"it is no statement of relaydesk ({error})") from error


def _from_csv(text: str) -> Statement:
    first, _, rest = text.partition("\n")
    head = msgspec.json.decode(first.removeprefix(_HEAD), type=StatementHead)
    lines = csv.reader(io.StringIO(rest))
    names = next(lines, [])
    if tuple(names) != COLUMNS:
        raise ValueError("its columns are not those of a statement")
    rows = []
    for number, cells in enumerate(lines, start=1):
        if len(cells) != len(COLUMNS) or number > MOST_ROWS:
            raise ValueError(f"line {number} has not {len(COLUMNS)} cells, or there are too many lines")
        found: dict[str, Any] = dict(zip(COLUMNS, cells, strict=True))
        found["record"] = msgspec.json.decode(found["record"], type=AnyRecord)
        rows.append(msgspec.convert(found, Row, strict=False))
    return Statement(head, tuple(rows))


def fault_in(statement: Statement) -> str:
    """The first thing that is wrong with a statement by itself, as a sentence; empty where all holds.

    Checked are the chain, the running amounts, who signed what, and the node's signature over the whole.
    Whether ``signing`` is the node's key is for the caller to know.
    """
    head = statement.statement
    ref = NodeRef(head.operator, head.node)
    try:
        prev, balance, held = start_of(ref, head.account), 0, 0
        holds: dict[str, int] = {}
        for number, row in enumerate(statement.rows, start=1):
            wrong = _fault_of_row(row, number, prev, balance, held) or _unsigned(row, head)
            wrong = wrong or _misheld(row, holds)
            if wrong:
                return f"row {number}: {wrong}"
            prev, balance, held = row.hash, row.balance, row.held
        if (head.rows, head.head, head.balance, head.held) != (len(statement.rows), prev, balance, held):
            return "its head is not about these rows"
        if not _signed(head.signing, head.canonical(), head.sig):
            return "the node's signature over the whole does not hold"
    except RecordError as error:
        return str(error)
    return ""


def _fault_of_row(row: Row, number: int, prev: str, balance: int, held: int) -> str:
    if row.seq != number:
        return f"it is numbered {row.seq}"
    if row.prev != prev:
        return "it does not follow the row before"
    if hash_of(row) != row.hash:
        return "its hash is not that of its content"
    if row.balance_change + row.held_change + row.earned + row.fee != row.issued:
        return "its amounts do not add up"
    if (balance + row.balance_change, held + row.held_change) != (row.balance, row.held):
        return "its running amounts do not follow"
    if row.balance < 0 or row.held < 0:
        return "an amount is below 0"
    return ""


def _unsigned(row: Row, head: StatementHead) -> str:
    """Whether somebody else signed, or something else than what the row says."""
    kind, who = _RECORDS[row.kind]
    record = row.record
    if type(record) is not kind or tx_of(record) != row.tx_id:
        return "its record is of something else"
    if isinstance(record, Claim) and who == "side":
        who = record.side
    may = {"node": head.node_keys, "operator": head.operator_keys, "payer": (head.account,)}[who]
    if row.signer not in may or not _signed(row.signer, record.canonical(), row.sig):
        return f"the {who}'s signature does not hold"
    if _moved(row) != (row.balance_change, row.held_change, row.earned, row.fee, row.issued):
        return "its amounts are not those of its record"
    return ""


def _moved(row: Row) -> tuple[int, int, int, int, int]:
    record = row.record
    if isinstance(record, Redemption):
        return record.amount, 0, 0, 0, record.amount
    if isinstance(record, OpenRecord):
        return -record.max_price, record.max_price, 0, 0, 0
    if isinstance(record, Closing) and record.outcome != "frozen":
        left = -row.held_change - record.amount - record.fee
        return left, row.held_change, record.amount, record.fee, 0
    return 0, 0, 0, 0, 0


def _misheld(row: Row, holds: dict[str, int]) -> str:
    """Every hold is made once and released once, whole."""
    if row.kind == "open":
        if row.tx_id in holds:
            return "its transaction is there already"
        holds[row.tx_id] = row.held_change
    elif row.held_change:
        if holds.get(row.tx_id) != -row.held_change:
            return "it releases what its transaction does not hold"
        holds[row.tx_id] = 0
    return ""


def _signed(address: str, canonical: bytes, sig: str) -> bool:
    try:
        return verify_text(decode_address(address), canonical, sig)
    except ValueError:
        return False
