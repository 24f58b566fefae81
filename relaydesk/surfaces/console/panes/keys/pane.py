"""The keys pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import on
from textual.app import ComposeResult

from relaydesk.core.commands import Command, Outcome, RotateDefaultKey, ShowDefaultKey
from relaydesk.core.text import safe_text
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import LIST, Action
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.pane import Pane
from relaydesk.surfaces.console.panes.keys import present
from relaydesk.surfaces.console.panes.keys.reveal import Reveal
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp

# Longer than any key of ours; an answer that is longer is none.
_LONGEST_KEY = 512


class KeysPane(Pane):
    """The keys, by name and fingerprint."""

    BINDINGS = bindings_for(LIST, "keys")

    def compose_body(self) -> ComposeResult:
        yield ListDetail(LiveTable(present.COLUMNS, id="list"), Made(id="key"))
        yield Made(id="client")

    def empty(self, view: NodeView) -> Notice | None:
        keys = view.keys.value
        return present.EMPTY if keys is not None and not keys.keys else None

    def show(self, view: NodeView) -> None:
        keys, table = view.keys.value, self.table
        if keys is not None and table is not None:
            now_ms = cast("ConsoleApp", self.app).session.clock.wall_ms()
            table.rows = present.rows(keys, view.requests.value, now_ms)
            meta = view.meta.value
            self.query_one("#client", Made).show(lambda width, *_: present.client_lines(meta, width))
            self._show_detail()

    def tick(self, now_ms: int) -> None:
        keys, view = self.view.keys.value if self.view is not None else None, self.view
        if keys is not None and view is not None and self.table is not None:
            self.table.rows = present.rows(keys, view.requests.value, now_ms)

    def subject(self) -> str:
        return (self.table.cursor_key if self.table is not None else "") or ""

    def request(self, action: Action, answer: str = "") -> Command:
        return ShowDefaultKey() if action.id == "keys.show" else RotateDefaultKey()

    def answered(self, action: Action, command: Command, outcome: Outcome) -> bool:
        secret = outcome.value.get("key") if outcome.ok and isinstance(outcome.value, dict) else None
        if not isinstance(secret, str):
            return False
        fresh = action.id == "keys.rotate"
        title = "The new default key" if fresh else "The default key"
        note = "The old one is refused from now on: give every client this one." if fresh else _USE
        self.app.push_screen(Reveal(title, safe_text(secret, _LONGEST_KEY), note))
        return True

    def close_detail(self) -> bool:
        self.remove_class("-detail")
        return super().close_detail()

    @on(LiveTable.RowSelected)
    def _opened(self) -> None:
        self.add_class("-detail")

    @on(LiveTable.RowHighlighted)
    def _highlighted(self) -> None:
        self._show_detail()

    def _show_detail(self) -> None:
        view = self.view
        key = present.find(view.keys.value, self.subject()) if view is not None else None
        detail = self.query_one("#key", Made)
        if view is None or key is None:
            detail.show(None)
            return
        meta, requests = view.meta.value, view.requests.value
        detail.show(lambda width, _height, _ascii: present.detail(key, meta, requests, width))


_USE = "Clients send it as a bearer token. Whoever has it can use this hub."
