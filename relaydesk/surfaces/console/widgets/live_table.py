"""A table for what ticks: drawn line by line, and only the lines that changed.

A changed cell costs its line, an unchanged tick nothing, and a row's strip is kept for as long as the row is
the same. Rows are set whole, as values: ``table.rows = rows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.message import Message
from textual.strip import Strip

from relaydesk.surfaces.console.widgets.cells import wrap
from relaydesk.surfaces.console.widgets.columns import MARGIN, Column, Place, column_at, lay_out
from relaydesk.surfaces.console.widgets.line_view import LineView
from relaydesk.surfaces.console.widgets.rows import Row, Sort
from relaydesk.surfaces.console.widgets.table_draw import draw_header, draw_row, draw_sentence
from relaydesk.surfaces.console.widgets.table_model import TableModel
from relaydesk.surfaces.console.widgets.tones import Palette

# Strips kept: several screens full, so that paging back costs nothing.
KEPT_STRIPS: Final = 512


class Titles(NamedTuple):
    """What the first line shows."""

    columns: tuple[Column, ...]
    places: tuple[Place, ...]
    sort: Sort | None
    focused: bool


class Shown(NamedTuple):
    """What a row's line shows; ``cursor`` is 1 for the cursor, 2 for that of a table that has the keys."""

    row: Row
    cursor: int


class LiveTable(LineView, can_focus=True):
    """Columns that drop when narrow, a cursor that stays with its row, an order and a filter.

    ``empty`` is the sentence shown where there are no rows: what is so, and what to do. Messages:
    `RowHighlighted` when another row is under the cursor (None when none is), `RowSelected` on Enter or a
    double click. A click on a title orders by that column.

    ``strips_built`` counts rows drawn that came from no cache.
    """

    DEFAULT_CSS = """
    LiveTable {
        overflow-y: auto;
        scrollbar-gutter: stable;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Up", show=False, id="table.up"),
        Binding("down,j", "cursor(1)", "Down", show=False, id="table.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="table.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="table.page-down"),
        Binding("home", "edge(0)", "First", show=False, id="table.first"),
        Binding("end", "edge(1)", "Last", show=False, id="table.last"),
        Binding("enter", "select", "Open", show=False, id="table.open"),
    ]

    class RowHighlighted(Message):
        """Another row is under the cursor. A later one supersedes an earlier one that nobody handled."""

        def __init__(self, table: LiveTable, row: Row | None) -> None:
            super().__init__()
            self.table = table
            self.row = row

        @property
        def control(self) -> LiveTable:
            """The table."""
            return self.table

        def can_replace(self, message: Message) -> bool:
            """True for an earlier one of the same table."""
            return isinstance(message, LiveTable.RowHighlighted) and message.table is self.table

    class RowSelected(Message):
        """A row was opened by Enter or a double click."""

        def __init__(self, table: LiveTable, row: Row) -> None:
            super().__init__()
            self.table = table
            self.row = row

        @property
        def control(self) -> LiveTable:
            """The table."""
            return self.table

    class SortChanged(Message):
        """The order is another one; None is the owner's own."""

        def __init__(self, table: LiveTable, sort: Sort | None) -> None:
            super().__init__()
            self.table = table
            self.sort = sort

        @property
        def control(self) -> LiveTable:
            """The table."""
            return self.table

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        empty: str = "",
        ascii: bool | None = None,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(ascii=ascii, name=name, id=id, classes=classes)
        self.strips_built = 0
        self._model = TableModel(columns)
        self._empty = empty
        self._stale = False
        self._places: tuple[Place, ...] = ()
        self._sentence: tuple[str, ...] = ()
        self._strips: LRUCache[tuple[str, int], tuple[Row, Strip]] = LRUCache(KEPT_STRIPS)
        self._announced: str | None = None

    # What the owner sets.

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, in the owner's order."""
        return self._model.rows

    @rows.setter
    def rows(self, rows: tuple[Row, ...]) -> None:
        anchor = self._anchor_line()
        if self._model.set_rows(rows):
            self._changed(anchor)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, those that do not fit included."""
        return self._model.columns

    @columns.setter
    def columns(self, columns: Sequence[Column]) -> None:
        self._model.set_columns(columns)
        self.forget()
        self.laid_out()
        self._changed(None)

    @property
    def filter_text(self) -> str:
        """Words that each row shown must hold; empty shows all."""
        return self._model.filter_text

    @filter_text.setter
    def filter_text(self, text: str) -> None:
        if text != self._model.filter_text:
            self._model.set_filter(text)
            self._changed(None)

    @property
    def sort(self) -> Sort | None:
        """The order; None is the owner's own."""
        return self._model.sort

    @sort.setter
    def sort(self, sort: Sort | None) -> None:
        before = self._model.sort
        self._model.set_sort(sort)
        if self._model.sort != before:
            self._changed(None)
            self.post_message(self.SortChanged(self, self._model.sort))

    @property
    def empty(self) -> str:
        """The sentence shown where there are no rows."""
        return self._empty

    @empty.setter
    def empty(self, sentence: str) -> None:
        if sentence != self._empty:
            self._empty = sentence
            self._changed(None)

    @property
    def stale(self) -> bool:
        """Whether the rows are old: they are shown dimmed, and the owner says since when."""
        return self._stale

    @stale.setter
    def stale(self, stale: bool) -> None:
        if stale != self._stale:
            self._stale = stale
            self.redraw()

    # What the owner asks.

    @property
    def view(self) -> Sequence[Row]:
        """The rows shown, filtered and in order."""
        return self._model.view

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor, None where there is none."""
        return self._model.cursor_row

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor."""
        row = self._model.cursor_row
        return None if row is None else row.key

    @property
    def shown_columns(self) -> tuple[Column, ...]:
        """The columns there is room for."""
        return tuple(self._model.columns[place.index] for place in self._places)

    @property
    def summary(self) -> str:
        """Where the cursor is, and what the filter hides, in a few words."""
        model = self._model
        place = f"{model.cursor + 1} of {len(model.view)}"
        return f"{place} ({len(model.rows)} without the filter)" if model.filter_text else place

    def move_to(self, key: str) -> bool:
        """Put the cursor on the row with this key; false where it is not shown."""
        index = self._model.index_of(key)
        if index is None:
            return False
        self._move(index)
        return True

    def cycle_sort(self) -> Sort | None:
        """Order by the next column shown, after the last one as the owner gave the rows."""
        self.sort = self._model.next_sort([place.index for place in self._places])
        return self.sort

    def reverse_sort(self) -> None:
        """Turn the order round, where there is one."""
        if self.sort is not None:
            self.sort = Sort(self.sort.key, not self.sort.descending)

    # Keys and mouse.

    def action_cursor(self, step: int) -> None:
        """Up or down by lines."""
        self._move(self._model.cursor + step)

    def action_page(self, step: int) -> None:
        """Up or down by a screen, one line of it kept."""
        self._move(self._model.cursor + step * max(1, self._body_height - 1))

    def action_edge(self, end: int) -> None:
        """To the first or the last row."""
        self._move(len(self._model.view) - 1 if end else 0)

    def action_select(self) -> None:
        """Open the row under the cursor."""
        row = self._model.cursor_row
        if row is not None:
            self.post_message(self.RowSelected(self, row))

    def on_click(self, event: events.Click) -> None:
        """A title orders, a row takes the cursor, a second click opens it."""
        place = event.get_content_offset(self)
        if place is None:
            return
        event.stop()
        if place.y == 0:
            column = column_at(self._places, place.x)
            if column is not None:
                self.sort = self._model.clicked_sort(column)
            return
        index = self.top + place.y - 1
        if index >= len(self._model.view):
            return
        self._move(index)
        if event.chain == 2:
            self.action_select()

    # Drawing.

    def line_content(self, y: int) -> Titles | Shown | str | None:
        """The titles, then rows from the first visible one; or the sentence of an empty table."""
        model = self._model
        if y == 0:
            return Titles(model.columns, self._places, model.sort, self.has_focus)
        view = model.view
        if not view:
            # One blank line below the titles.
            return self._sentence[y - 2] if 2 <= y < len(self._sentence) + 2 else None
        index = self.top + y - 1
        if index >= len(view):
            return None
        return Shown(view[index], (2 if self.has_focus else 1) if index == model.cursor else 0)

    def draw_line(self, content: object, palette: Palette) -> Strip:
        """One line as a strip; rows out of the cache while they are the same."""
        width = self.line_width
        if isinstance(content, Shown):
            kept = self._strips.get((content.row.key, content.cursor))
            if kept is None or kept[0] != content.row:
                kept = (content.row, self._draw_row(content, palette, width))
                self._strips[(content.row.key, content.cursor)] = kept
            return kept[1]
        if isinstance(content, Titles):
            return draw_header(
                content.columns,
                content.places,
                width,
                palette,
                sort=content.sort,
                focused=content.focused,
            )
        return draw_sentence(content if isinstance(content, str) else "", width, palette)

    def _draw_row(self, content: Shown, palette: Palette, width: int) -> Strip:
        self.strips_built += 1
        whole = None
        if content.cursor:
            whole = palette.cursor if content.cursor == 2 else palette.cursor_blurred
        elif self._stale:
            whole = palette["dim"]
        columns = self._model.columns
        return draw_row(content.row, columns, self._places, width, palette, whole=whole)

    def forget(self) -> None:
        """Drop the strips."""
        self._strips.clear()

    def laid_out(self) -> None:
        """Which columns there is room for, and the cursor in sight."""
        self._places = lay_out(self._model.columns, self.line_width)
        self._write_sentence()
        self.set_lines(len(self._model.view) + 1)
        self._show_cursor()

    def _write_sentence(self) -> None:
        asked = self._model.filter_text
        text = self._empty
        if asked and self._model.rows:
            text = f"No row holds “{asked}”. Clear the filter to see all {len(self._model.rows)}."
        self._sentence = () if self._model.view else wrap(text, self.line_width - 2 * MARGIN)

    # The cursor and the part of the rows that is seen.

    @property
    def _body_height(self) -> int:
        return max(0, self.size.height - 1)

    def _anchor_line(self) -> int | None:
        """The cursor's line on the screen, where it is to stay while rows come and go above it.

        None at the top of the table: there new rows are seen coming.
        """
        line = self._model.cursor - self.top
        return line if self.top and 0 <= line < self._body_height else None

    def _changed(self, anchor: int | None) -> None:
        """Rows, order, filter or columns are others."""
        if self.size:
            self._write_sentence()
            self.set_lines(len(self._model.view) + 1)
            if anchor is not None:
                self.scroll_to_line(self._model.cursor - anchor)
            self._show_cursor()
            self.repaint()
        self._announce()

    def _show_cursor(self) -> None:
        cursor, top, height = self._model.cursor, self.top, self._body_height
        if cursor < top:
            self.scroll_to_line(max(0, cursor))
        elif height and cursor >= top + height:
            self.scroll_to_line(cursor - height + 1)

    def _move(self, index: int) -> None:
        if self._model.move(index):
            self._show_cursor()
            self.repaint()
            self._announce()

    def _announce(self) -> None:
        key = self.cursor_key
        if key != self._announced:
            self._announced = key
            self.post_message(self.RowHighlighted(self, self._model.cursor_row))
