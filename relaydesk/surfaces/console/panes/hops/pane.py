"""The hops pane."""

from __future__ import annotations

from textual.app import ComposeResult

from relaydesk.core.commands import Command, Outcome, ProbeRelays
from relaydesk.core.view.network import HopsView
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import LIST, Action
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.list_pane import ListPane
from relaydesk.surfaces.console.panes.hops import present
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.panes.relays.pane import probed
from relaydesk.surfaces.console.panes.relays.present import OFF
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable


class HopsPane(ListPane):
    """The newest exchanges of this node through relays."""

    BINDINGS = bindings_for(LIST, "hops")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)

    def compose_body(self) -> ComposeResult:
        yield Made(id="sign")
        yield ListDetail(LiveTable(present.COLUMNS, id="list"), Made(id="hop"))

    def empty(self, view: NodeView) -> Notice | None:
        network, hops = view.network.value, view.hops.value
        if hops is None or hops.hops:
            return None
        return OFF if network is not None and not network.on else present.EMPTY

    def show(self, view: NodeView) -> None:
        hops, table = view.hops.value, self.table
        if hops is None or table is None:
            return
        table.empty = "Every hop brought an answer. esc shows them." if self.limited else ""
        table.rows = rows = present.rows(hops, failures=self.limited)
        left_out = len(hops.hops) - len(rows)
        sign = self.query_one("#sign", Made)
        sign.show((lambda width, *_: present.sign(left_out, width)) if self.limited else None)
        self.show_detail()

    def do_failures(self) -> None:
        """Only what failed, or everything."""
        self.toggle_limit()

    def reason(self, action: Action) -> str:
        network = self.view.network.value if self.view is not None else None
        off = action.command is not None and (network is None or not network.on)
        return "the network is off" if off else ""

    def meant(self, action: Action, *answers: str) -> str:
        # A probe is of every node, whichever hop is selected.
        return "" if action.command is not None else self.subject()

    def request(self, action: Action, *answers: str) -> Command:
        return ProbeRelays()

    def answered(self, action: Action, command: Command, outcome: Outcome) -> bool:
        self.desk.say(f"{action.label}: {probed(outcome)}")
        return True

    @property
    def _hops(self) -> HopsView | None:
        return self.view.hops.value if self.view is not None else None

    def show_detail(self) -> None:
        hops, key = self._hops, self.subject()
        found = present.find(hops, key) if hops is not None and key else None
        made = self.query_one("#hop", Made)
        if hops is None or found is None:
            made.show(None)
            return
        made.show(lambda width, *_: present.detail(found, hops, width))
