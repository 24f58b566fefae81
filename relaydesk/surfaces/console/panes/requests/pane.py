"""The requests pane."""

from __future__ import annotations

from textual.app import ComposeResult

from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import RequestsView
from relaydesk.surfaces.console.action import LIST
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.list_pane import ListPane
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.panes.requests import present
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable
from relaydesk.surfaces.console.widgets.rows import Sort

_SLOWEST = Sort("total", descending=True)
_FRESH_MS = 900


class RequestsPane(ListPane):
    """Requests under way, and the newest that ended."""

    BINDINGS = bindings_for(LIST, "requests")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        self._shown_ms = 0

    def compose_body(self) -> ComposeResult:
        yield Made(id="sign")
        yield ListDetail(LiveTable(present.COLUMNS, id="list"), Made(id="request"))

    def empty(self, view: NodeView) -> Notice | None:
        requests = view.requests.value
        return present.EMPTY if requests is not None and not (requests.in_flight or requests.recent) else None

    def show(self, view: NodeView) -> None:
        requests, table = view.requests.value, self.table
        if requests is None or table is None:
            return
        table.empty = "Nothing has failed. esc shows everything again." if self.limited else ""
        self._shown_ms = self.now_ms
        table.rows = rows = present.rows(requests, self._shown_ms, failures=self.limited)
        left_out = len(requests.in_flight) + len(requests.recent) - len(rows)
        sign = self.query_one("#sign", Made)
        sign.show((lambda width, *_: present.sign(left_out, width)) if self.limited else None)
        self.show_detail()

    def tick(self, now_ms: int) -> None:
        requests = self._requests
        # What has ended has no age to show, and while views come in every age is fresh.
        if now_ms - self._shown_ms < _FRESH_MS or requests is None or not requests.in_flight:
            return
        if not self.state.covers and self.view is not None:
            self.show(self.view)

    def do_slowest(self) -> None:
        """The slowest at the top, under the cursor; or the owner's order again."""
        if self.table is not None:
            self.table.sort = None if self.table.sort == _SLOWEST else _SLOWEST
            self.table.action_edge(0)

    def do_failures(self) -> None:
        """Only what went wrong, or everything."""
        self.toggle_limit()

    @property
    def _requests(self) -> RequestsView | None:
        return self.view.requests.value if self.view is not None else None

    def show_detail(self) -> None:
        requests, key = self._requests, self.subject()
        found = present.find(requests, key) if requests is not None and key else None
        detail = self.query_one("#request", Made)
        if found is None:
            detail.show(None)
            return
        now_ms = self.now_ms
        detail.show(lambda width, _height, ascii: present.detail(found, now_ms, width, ascii=ascii))
