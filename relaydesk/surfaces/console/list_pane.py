"""A pane of one list and the detail of its selected row: what all of these do alike."""

from __future__ import annotations

from textual import on

from relaydesk.surfaces.console.pane import Pane
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.widgets.live_table import LiveTable


class ListPane(Pane):
    """Subclasses fill in `show_detail`; rows have what they are called as their key.

    ``limited`` says that a key of the pane leaves rows out; `toggle_limit` is that key.
    """

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        self.limited = False

    def show_detail(self) -> None:
        """Put the selected row's detail beside the list; none where no row is selected."""

    def subject(self) -> str:
        return (self.table.cursor_key if self.table is not None else "") or ""

    def copied(self) -> str:
        return self.subject()

    def toggle_limit(self) -> None:
        """Leave rows out, or show all of them again."""
        self.limited = not self.limited
        if self.view is not None:
            self.show(self.view)

    def clear_limits(self) -> bool:
        if not self.limited:
            return False
        self.toggle_limit()
        return True

    @on(LiveTable.RowHighlighted)
    @on(LiveTable.RowSelected)
    def _row_changed(self) -> None:
        self.show_detail()
