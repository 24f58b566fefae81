"""What a table shows, without a terminal: rows, their order, the filter, and the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import Filter, Row, Sort, sorted_rows


class TableModel:
    """Rows in the order shown, and a cursor that stays with its row's key.

    ``cursor`` is an index into ``view``, −1 where the view is empty. When the cursor's row goes, the cursor
    stays at its line; when a filter hides it, the cursor goes to the first line.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns: tuple[Column, ...] = tuple(columns)
        self.rows: tuple[Row, ...] = ()
        self.view: Sequence[Row] = ()
        self.cursor = -1
        self.sort: Sort | None = None
        self._filter = Filter()

    @property
    def filter_text(self) -> str:
        """The filter as typed; empty shows all rows."""
        return self._filter.text

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor."""
        return self.view[self.cursor] if 0 <= self.cursor < len(self.view) else None

    def set_rows(self, rows: tuple[Row, ...]) -> bool:
        """Replace all rows; false where they are equal to those there are."""
        if rows is self.rows or rows == self.rows:
            return False
        self.rows = rows
        self._arrange(lost=self.cursor)
        return True

    def set_filter(self, text: str) -> None:
        """Show only rows that hold every word of the text."""
        self._filter.text = text
        self._arrange(lost=0)

    def set_sort(self, sort: Sort | None) -> None:
        """Order by a column, or as the owner gave the rows. An unknown column is no order."""
        self.sort = sort if sort is not None and self.column_index(sort.key) is not None else None
        self._arrange(lost=self.cursor)

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Other columns; the order stays where its column does."""
        self.columns = tuple(columns)
        self.set_sort(self.sort)

    def column_index(self, key: str) -> int | None:
        """Where the column with this key stands."""
        return next((index for index, column in enumerate(self.columns) if column.key == key), None)

    def index_of(self, key: str) -> int | None:
        """The line of the row with this key."""
        return next((index for index, row in enumerate(self.view) if row.key == key), None)

    def move(self, index: int) -> bool:
        """Put the cursor at a line, or the nearest there is; true where it moved."""
        index = max(0, min(index, len(self.view) - 1)) if self.view else -1
        moved = index != self.cursor
        self.cursor = index
        return moved

    def next_sort(self, shown: Sequence[int]) -> Sort | None:
        """The order after the current one: each of the columns shown, then the owner's own."""
        keys = [self.columns[index].key for index in shown]
        place = keys.index(self.sort.key) + 1 if self.sort is not None and self.sort.key in keys else 0
        return self.first_sort(shown[place]) if place < len(keys) else None

    def first_sort(self, index: int) -> Sort:
        """A column's own direction."""
        column = self.columns[index]
        return Sort(column.key, column.descending)

    def clicked_sort(self, index: int) -> Sort | None:
        """What a click on a column's title makes of the order: its own direction, the other, none."""
        first = self.first_sort(index)
        if self.sort == first:
            return Sort(first.key, not first.descending)
        return first if self.sort is None or self.sort.key != first.key else None

    def _arrange(self, lost: int) -> None:
        under = self.cursor_row
        rows: Sequence[Row] = self._filter.apply(self.rows)
        if self.sort is not None:
            index = self.column_index(self.sort.key)
            if index is not None:
                rows = sorted_rows(rows, index, descending=self.sort.descending)
        self.view = rows
        if under is not None:
            # Mostly the row has not moved, and thousands need not be searched.
            if self.cursor < len(rows) and rows[self.cursor].key == under.key:
                return
            found = self.index_of(under.key)
            lost = lost if found is None else found
        self.move(lost)
