"""Rows as values, how they are ordered, and which of them a filter lets through."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

SortKey: TypeAlias = float | int | str


class Cell(msgspec.Struct, frozen=True, gc=False):
    """What one cell shows: ``text`` is `SafeText` or a literal of ours, ``tone`` a name of `tones.TONES`.

    ``sort`` is what the column sorts by where the text does not say it: bytes beside "1.2 GiB".
    """

    text: str = ""
    tone: str = ""
    sort: SortKey | None = None


class Row(msgspec.Struct, frozen=True):
    """One row. ``key`` names what it shows for as long as that lives: the cursor stays with it.

    ``cells`` stand in the order of the table's columns; missing ones are blank. Rows are compared by value.
    """

    key: str
    cells: tuple[Cell, ...] = ()

    def cell(self, index: int) -> Cell:
        """The cell of a column, blank where the row has none."""
        return self.cells[index] if index < len(self.cells) else BLANK


BLANK = Cell()


@dataclass(frozen=True, slots=True)
class Sort:
    """Order by the column with this key."""

    key: str
    descending: bool = False


def sorted_rows(rows: Iterable[Row], index: int, *, descending: bool = False) -> list[Row]:
    """Rows by one column. Equal rows keep their order; rows without a value come last both ways.

    Numbers come before text. Text is compared without case.
    """
    valued: list[tuple[tuple[int, float, str], Row]] = []
    last: list[Row] = []
    for row in rows:
        rank = _rank(row.cell(index))
        if rank is None:
            last.append(row)
        else:
            valued.append((rank, row))
    valued.sort(key=_first, reverse=descending)
    return [row for _, row in valued] + last


def _first(pair: tuple[tuple[int, float, str], Row]) -> tuple[int, float, str]:
    return pair[0]


def _rank(cell: Cell) -> tuple[int, float, str] | None:
    value = cell.text if cell.sort is None else cell.sort
    if isinstance(value, str):
        return (1, 0.0, value.casefold()) if value else None
    return None if math.isnan(value) else (0, value, "")


class Filter:
    """Which rows hold every word of a text, in any cell, without case.

    What a row says is kept between calls, so that a table of thousands costs a look-up a tick.
    """

    def __init__(self) -> None:
        self._text = ""
        self._words: tuple[str, ...] = ()
        self._known: dict[str, tuple[Row, str]] = {}

    @property
    def text(self) -> str:
        """What was asked for, as typed."""
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text = text
        self._words = tuple(text.casefold().split())
        if not self._words:
            self._known.clear()

    def apply(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows that match, in their order; the same tuple where nothing is asked."""
        words = self._words
        if not words:
            return rows
        if len(self._known) > 2 * len(rows) + 64:
            self._known.clear()
        return tuple(row for row in rows if self._holds(row, words))

    def _holds(self, row: Row, words: tuple[str, ...]) -> bool:
        known = self._known.get(row.key)
        if known is None or known[0] != row:
            known = (row, "\n".join(cell.text for cell in row.cells).casefold())
            self._known[row.key] = known
        return all(word in known[1] for word in words)
