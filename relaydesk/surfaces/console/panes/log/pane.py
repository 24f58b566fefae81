"""The log pane: follows the newest line until somebody looks at another."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import LIST
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.pane import Pane
from relaydesk.surfaces.console.panes.log import present
from relaydesk.surfaces.console.pieces import content
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable


class LogPane(Pane):
    """The newest lines of the node's log."""

    BINDINGS = bindings_for(LIST, "log")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        self._follow = True
        self._level = present.LEVELS[0]

    def compose_body(self) -> ComposeResult:
        table = LiveTable(present.COLUMNS, empty="No line of this level. l shows more.", id="list")
        yield ListDetail(table, Static(id="log-detail", markup=False))

    def empty(self, view: NodeView) -> Notice | None:
        log = view.log.value
        if log is not None and not log.lines:
            return Notice("Nothing was logged yet.", "lines appear here as the node writes them")
        return None

    def show(self, view: NodeView) -> None:
        log, table = view.log.value, self.table
        if log is None or table is None:
            return
        # Moving away from the end is how one stops following; going back to it, how one follows again.
        if table.cursor_row is not None:
            self._follow = table.cursor_row is table.view[-1] and table.sort is None
        table.rows = present.rows(log, self._level)
        if self._follow:
            table.action_edge(1)

    def do_follow(self) -> None:
        """Go to the newest line and stay there."""
        if self.table is not None:
            self.table.sort = None
            self.table.action_edge(1)

    def do_level(self) -> None:
        """The next level of `present.LEVELS`."""
        levels = present.LEVELS
        self._level = levels[(levels.index(self._level) + 1) % len(levels)]
        if self.view is not None:
            self.show(self.view)
        self.app.notify(f"Shown: {self._level} and above", markup=False, timeout=2)

    @on(LiveTable.RowHighlighted)
    def _highlighted(self, event: LiveTable.RowHighlighted) -> None:
        lines = present.detail(event.row) if event.row is not None else ()
        text = Content("\n").join(content(line) for line in lines)
        self.query_one("#log-detail", Static).update(text)
