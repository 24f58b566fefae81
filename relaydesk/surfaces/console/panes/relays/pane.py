"""The relays pane."""

from __future__ import annotations

from typing import Final

import msgspec
from textual.app import ComposeResult

from relaydesk.core.codec import convert
from relaydesk.core.commands import (
    BlockOperator,
    Command,
    ForgetOperator,
    Outcome,
    ProbeRelays,
    TrustOperator,
)
from relaydesk.core.view.amounts import plural
from relaydesk.core.view.network import HopView, NetworkView, RelaysView, RelayView
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import LIST, Action
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.list_pane import ListPane
from relaydesk.surfaces.console.panes.hopcheck.actions import OPEN
from relaydesk.surfaces.console.panes.hops.present import outcome as outcome_of
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.panes.refs import short_ref
from relaydesk.surfaces.console.panes.relays import detail, head, own, present
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable
from relaydesk.surfaces.console.widgets.rows import Row
from relaydesk.surfaces.console.widgets.spans import Line

# Lines of the head by the least rows of a terminal.
_HEAD: Final = ((32, 6), (24, 4), (0, 2))
# The check's place in the footer: this is where an operator sees that the node is passed over.
_CHECK: Final = 58
_OPERATORS: Final = ("relays.trust", "relays.block", "relays.forget")
_ASKS: Final = {
    "relays.trust": "Its nodes are used whatever directories say of it, until that is taken back.",
    "relays.block": "None of its nodes is asked, or asked through, any more.",
}
_KINDS: Final = {
    "relays.trust": TrustOperator,
    "relays.block": BlockOperator,
    "relays.forget": ForgetOperator,
}


class Probes(msgspec.Struct, frozen=True):
    """What a node says of the probes it made."""

    probes: tuple[HopView, ...] = ()


class RelaysPane(ListPane):
    """The nodes of the network, this one's place among them, and what was seen of each."""

    BINDINGS = bindings_for(LIST, "relays")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)

    def compose_body(self) -> ComposeResult:
        yield Made(id="head")
        yield Made(id="sign")
        yield ListDetail(LiveTable(present.COLUMNS, id="list"), Made(id="relay"))

    def empty(self, view: NodeView) -> Notice | None:
        network = view.network.value
        return present.OFF if network is not None and not network.on else None

    def show(self, view: NodeView) -> None:
        relays, table = view.relays.value, self.table
        if relays is None or table is None:
            return
        network = view.network.value
        table.empty = "Nothing wants a look. esc shows everything again." if self.limited else ""
        table.rows = rows = self._rows(relays)
        left_out = len(present.everybody(relays, network)) - len(rows)
        sign = self.query_one("#sign", Made)
        sign.show((lambda width, *_: present.sign(left_out, width)) if self.limited else None)
        self.query_one("#head", Made).show(self._head)
        self.show_detail()

    def tick(self, now_ms: int) -> None:
        relays, table = self._relays, self.table
        if relays is None or table is None or self.state.covers:
            return
        table.rows = self._rows(relays)
        self.query_one("#head", Made).update()
        if self.query_one(ListDetail).detail_shown:
            self.show_detail()

    def do_trouble(self) -> None:
        """Only what wants a look, or everything."""
        self.toggle_limit()

    def weight(self, action: Action) -> int:
        return _CHECK if action.id == OPEN.id else action.footer

    def reason(self, action: Action) -> str:
        relay = self._selected
        if action.command is None:
            return ""
        if self._network is None or not self._network.on:
            return "the network is off"
        if action.id == "relays.probe-all":
            return ""
        if relay is None:
            return "no node is selected"
        if relay.standing == "self":
            return "that is this node itself"
        if action.id == "relays.probe":
            return (
                "" if relay.standing == "eligible" else f"it is {present.state(relay).word}, so never asked"
            )
        return "" if relay.owner else "its owner is not known"

    def meant(self, action: Action, *answers: str) -> str:
        relay = self._selected
        if action.id == "relays.probe-all" or relay is None:
            return ""
        return relay.owner if action.id in _OPERATORS else relay.ref

    def phrase(self, action: Action, *answers: str) -> str:
        operator = self.subject().partition(":")[0]
        if action.id in _OPERATORS:
            return f"{action.label} operator {operator}"
        return action.label if action.id == "relays.probe-all" else f"probe {short_ref(self.subject())}"

    def asks(self, action: Action) -> tuple[str, ...]:
        return (_ASKS[action.id],) if action.id in _ASKS else ()

    def request(self, action: Action, *answers: str) -> Command:
        relay = self._selected
        kind = _KINDS.get(action.id)
        if kind is not None and relay is not None:
            return kind(owner=relay.owner)
        return ProbeRelays(ref="" if action.id == "relays.probe-all" else self.subject())

    def answered(self, action: Action, command: Command, outcome: Outcome) -> bool:
        if not isinstance(command, ProbeRelays):
            return False
        what = f"probe {short_ref(command.ref)}" if command.ref else action.label
        self.desk.say(f"{what}: {probed(outcome)}")
        return True

    @property
    def _relays(self) -> RelaysView | None:
        return self.view.relays.value if self.view is not None else None

    @property
    def _network(self) -> NetworkView | None:
        return self.view.network.value if self.view is not None else None

    @property
    def _selected(self) -> RelayView | None:
        relays = self._relays
        return present.find(relays, self._network, self.subject()) if relays is not None else None

    def _rows(self, relays: RelaysView) -> tuple[Row, ...]:
        ascii = self.desk.ascii
        return present.rows(relays, self._network, self.now_ms, trouble=self.limited, ascii=ascii)

    def _head(self, width: int, *_: object) -> tuple[Line, ...]:
        most = next(lines for rows, lines in _HEAD if self.app.size.height >= rows)
        return head.lines(self._network, self._relays or RelaysView(), self.now_ms, width, most)

    def show_detail(self) -> None:
        relay, network, now_ms = self._selected, self._network, self.now_ms
        made = self.query_one("#relay", Made)
        if relay is None:
            made.show(None)
        elif relay.standing == "self" and network is not None:
            made.show(lambda width, _height, ascii: own.lines(network, now_ms, width, ascii=ascii))
        else:
            made.show(lambda width, _height, ascii: detail.lines(relay, now_ms, width, ascii=ascii))


def probed(outcome: Outcome) -> str:
    """What came of probes, in a few words."""
    try:
        probes = convert(outcome.value, Probes).probes
    except (msgspec.ValidationError, RecursionError):
        return "done"
    if not probes:
        return "nobody could be asked: there is no relay to ask through"
    if len(probes) == 1:
        only = probes[0]
        said = present.answer(only.status, only.code, marker=only.marker)
        return f"{said} through {short_ref(only.relay)}, {only.duration_ms} ms"
    good = sum(outcome_of(each) == "answered" for each in probes)
    charged = sum(each.charged == "relay" for each in probes)
    blamed = f", {plural(charged, 'time')} a relay was charged" if charged else ""
    return f"{good} of {len(probes)} answered{blamed}"
