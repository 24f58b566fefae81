"""A list and the detail of its selected row: side by side where there is room, else one at a time."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.widget import Widget

from relaydesk.surfaces.console.widgets.live_table import LiveTable

# Terminal columns from which both are shown.
SPLIT_COLUMNS = 120


class ListDetail(Container):
    """``ListDetail(table, detail)``. Enter opens the detail or moves into it, Escape goes back.

    From `SPLIT_COLUMNS` columns on both stand side by side, and the detail follows the cursor by the owner's
    hand (`LiveTable.RowHighlighted`). Below, the detail covers the list while it is open.
    """

    DEFAULT_CSS = """
    ListDetail { layout: horizontal; height: 1fr; }
    ListDetail > LiveTable { width: 3fr; height: 1fr; }
    ListDetail > #detail { display: none; height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    ListDetail.-open > LiveTable { display: none; }
    ListDetail.-open > #detail { display: block; width: 1fr; }
    """

    def __init__(self, table: LiveTable, *detail: Widget, id: str | None = None) -> None:
        super().__init__(id=id)
        self.list = table
        self._detail = VerticalScroll(*detail, id="detail")

    def compose(self) -> ComposeResult:
        yield self.list
        yield self._detail

    @property
    def split(self) -> bool:
        """Whether both are shown."""
        return self.screen.has_class("-split")

    @property
    def detail_shown(self) -> bool:
        """Whether the detail is on the screen: a hidden one need not be filled."""
        return self.split or self.opened

    @property
    def opened(self) -> bool:
        """Whether the detail was opened: below `SPLIT_COLUMNS` it covers the list, else it has the keys."""
        return self.has_class("-open")

    def open(self) -> None:
        """Show the detail, and let keys scroll it."""
        self.add_class("-open")
        self._detail.scroll_home(animate=False)
        self.call_after_refresh(self._detail.focus, scroll_visible=False)

    def close(self) -> bool:
        """Back to the list; False where it has the keyboard already."""
        if not self.opened:
            return False
        self.remove_class("-open")
        self.list.focus(scroll_visible=False)
        return True

    @on(LiveTable.RowSelected)
    def _opened(self, event: LiveTable.RowSelected) -> None:
        if event.table is self.list:
            self.open()
