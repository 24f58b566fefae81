"""Two statements of one account, side by side: the first difference by its name."""

from __future__ import annotations

from typing import Any

import msgspec

from relaydesk.core.ledger.account import Row
from relaydesk.core.ledger.statement import COLUMNS, Statement
from relaydesk.core.text import SafeText, safe_text


class Difference(msgspec.Struct, frozen=True):
    """Where two statements part. ``row`` is 0 for the head; ``ours`` and ``theirs`` are what stands there."""

    row: int
    field: str
    ours: SafeText
    theirs: SafeText

    @property
    def sentence(self) -> str:
        where = f"row {self.row}" if self.row else "the head"
        return f"{where}: {self.field} is {self.ours} in the first and {self.theirs} in the second"


class Comparison(msgspec.Struct, frozen=True):
    """``same`` rows are in both; ``more`` is how many rows the first has beyond the second (below 0: lacks).

    A statement taken later has more rows: that is no difference.
    """

    same: int
    more: int
    difference: Difference | None = None


def compare(ours: Statement, theirs: Statement) -> Comparison:
    """Row by row, column by column, in their order; rows beyond the shorter statement are no difference."""
    for name in ("account", "operator", "node"):
        first, second = getattr(ours.statement, name), getattr(theirs.statement, name)
        if first != second:
            return Comparison(0, 0, _difference(0, name, first, second))
    more = len(ours.rows) - len(theirs.rows)
    for number, (first, second) in enumerate(zip(ours.rows, theirs.rows, strict=False), start=1):
        found = _row_difference(number, first, second)
        if found is not None:
            return Comparison(number - 1, more, found)
    return Comparison(min(len(ours.rows), len(theirs.rows)), more)


def _row_difference(number: int, first: Row, second: Row) -> Difference | None:
    if first == second:
        return None
    for name in COLUMNS:
        one, other = getattr(first, name), getattr(second, name)
        if one == other:
            continue
        if name == "record" and type(one) is type(other):
            return _record_difference(number, one, other)
        return _difference(number, name, one, other)
    return None


def _record_difference(number: int, one: Any, other: Any) -> Difference:
    first, second = _flat(one), _flat(other)
    name = next(name for name in first if first[name] != second[name])
    return _difference(number, f"record.{name}", first[name], second[name])


def _flat(record: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(record).items():
        found |= {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            found[name] = value
    return found


def _difference(row: int, field: str, ours: Any, theirs: Any) -> Difference:
    shown = [
        safe_text(str(each) if isinstance(each, int | str) else msgspec.json.encode(each).decode(), 200)
        for each in (ours, theirs)
    ]
    return Difference(row, field, *shown)
