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
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.pieces import content, mark
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable
from relaydesk.surfaces.console.widgets.rows import Row


class LogPane(Pane):
    """The newest lines of the node's log."""

    BINDINGS = bindings_for(LIST, "log")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        self._follow = True
        self._level = present.LEVELS[0]
        # The line whose detail was opened: it is shown though the level leaves it out of the list.
        self._open: Row | None = None

    def compose_body(self) -> ComposeResult:
        yield Made(id="sign")
        table = LiveTable(present.COLUMNS, id="list")
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
        table.empty = present.none_of(self._level)
        table.rows = rows = present.rows(log, self._level)
        level, hidden = self._level, present.hidden(log, rows)
        self.query_one("#sign", Made).show(lambda width, *_: present.sign(level, hidden, width))
        if self._follow:
            table.action_edge(1)
        self._show_detail()

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
        self._show_detail()

    def clear_limits(self) -> bool:
        limited = self._level != present.LEVELS[0]
        if limited and self.view is not None:
            self._level = present.LEVELS[0]
            self.show(self.view)
        return limited

    def close_detail(self) -> bool:
        self._open = None
        return super().close_detail()

    @on(LiveTable.RowSelected)
    def _opened(self, event: LiveTable.RowSelected) -> None:
        self._open = event.row
        self._show_detail()

    @on(LiveTable.RowHighlighted)
    def _highlighted(self) -> None:
        self._show_detail()

    def _show_detail(self) -> None:
        """The line under the cursor; one that was opened stays though the level hides it, and says so."""
        table, opened = self.table, self._open
        if table is None:
            return
        row, lines = table.cursor_row, []
        if opened is not None and all(each.key != opened.key for each in table.rows):
            row = opened
            said = f"The list shows {self._level} and worse, so not this line. l shows more."
            lines += [(mark("warn", said),), ()]
        elif row is None:
            lines.append((mark("dim", present.none_of(self._level)),))
        elif opened is not None:
            self._open = row
        lines += present.detail(row) if row is not None else ()
        self.query_one("#log-detail", Static).update(Content("\n").join(content(line) for line in lines))
