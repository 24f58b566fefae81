"""Rows as values, how they are ordered, and which of them a filter lets through."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec

SortKey: TypeAlias = float | int | str
S = TypeVar("S")


class Cell(msgspec.Struct, frozen=True, gc=False):
    """What one cell shows: ``text`` is `SafeText` or a literal of ours, ``tone`` a name of `tones.TONES`.

    ``sort`` is what the column sorts by where the text does not say it: bytes beside "1.2 GiB".
    """

    text: str = ""
    tone: str = ""
    sort: SortKey | None = None


class Row:
    """One row. ``key`` names what it shows for as long as that lives: the cursor stays with it.

    ``cells`` stand in the order of the table's columns; missing ones are blank. Rows are compared by value.
    """

    __slots__ = ("_cells", "_make", "_source", "key")
    _make: Callable[[Any], tuple[Cell, ...]]
    _source: Any

    def __init__(self, key: str, cells: tuple[Cell, ...] = ()) -> None:
        self.key = key
        self._cells: tuple[Cell, ...] | None = cells

    @classmethod
    def late(cls, key: str, make: Callable[[S], tuple[Cell, ...]], source: S) -> Row:
        """A row whose cells are made of ``source`` when they are first looked at: few are on the screen."""
        row = cls(key)
        row._cells, row._make, row._source = None, make, source
        return row

    @property
    def cells(self) -> tuple[Cell, ...]:
        """What the row shows."""
        if self._cells is None:
            self._cells = self._make(self._source)
            del self._make, self._source
        return self._cells

    def cell(self, index: int) -> Cell:
        """The cell of a column, blank where the row has none."""
        cells = self.cells
        return cells[index] if index < len(cells) else BLANK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self is other or (self.key == other.key and self.cells == other.cells)

    __hash__ = None  # type: ignore[assignment]


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
    numbers: list[Row] = []
    number_keys: list[float] = []
    texts: list[Row] = []
    text_keys: list[str] = []
    last: list[Row] = []
    for row in rows:
        cell = row.cell(index)
        value = cell.text if cell.sort is None else cell.sort
        if isinstance(value, str):
            if value:
                texts.append(row)
                text_keys.append(value.casefold())
            else:
                last.append(row)
        elif value != value:
            last.append(row)
        else:
            numbers.append(row)
            number_keys.append(value)
    by_number = _ordered(numbers, number_keys, descending)
    by_text = _ordered(texts, text_keys, descending)
    return (by_text + by_number if descending else by_number + by_text) + last


def _ordered(rows: list[Row], keys: list[Any], descending: bool) -> list[Row]:
    # Plain keys beside the rows: pairs of both would be thousands of objects for the collector at each tick.
    return [rows[at] for at in sorted(range(len(rows)), key=keys.__getitem__, reverse=descending)]


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
        first, more = words[0], words[1:]
        kept: list[Row] = []
        for row in rows:
            known = self._known.get(row.key)
            if known is None or (known[0] is not row and known[0] != row):
                known = (row, "\n".join([cell.text for cell in row.cells]).casefold())
                self._known[row.key] = known
            if first in known[1] and (not more or all(word in known[1] for word in more)):
                kept.append(row)
        return tuple(kept)
