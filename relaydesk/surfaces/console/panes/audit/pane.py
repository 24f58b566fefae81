"""The audit pane: asks the node for its newest records while it is looked at."""

from __future__ import annotations

from typing import Final

import msgspec
from textual.app import ComposeResult

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.core.codec import fault_view
from relaydesk.core.commands import ShowAudit
from relaydesk.core.errors import Fault, FaultError
from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import FaultView, Section
from relaydesk.surfaces.console.action import LIST, Action
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.list_pane import ListPane
from relaydesk.surfaces.console.panes.audit import present
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import pane_state
from relaydesk.surfaces.console.widgets.live_table import LiveTable

NEWEST: Final = 200
_ALL: Final = AuditFilter()


class _Found(msgspec.Struct):
    records: tuple[AuditRecord, ...]


class AuditPane(ListPane):
    """The newest records that match. They are no section of a view: the pane fetches them itself.

    Fetched at once when the pane is shown or the filter changes, else from `tick`, which comes once a second
    and not while the console is paused, hidden, or shows another pane.
    """

    BINDINGS = bindings_for(LIST, "audit")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        self._wanted = _ALL
        self._records: Section[tuple[AuditRecord, ...]] = Section("loading", 0)
        self._link = Link()
        self._asked_ms = 0
        self._asking = False

    def compose_body(self) -> ComposeResult:
        yield Made(id="sign")
        yield ListDetail(LiveTable(present.COLUMNS, id="list"), Made(id="record"))

    def take(self, view: NodeView, link: Link) -> None:
        came = link.state == "live" and self._link.state != "live"
        self.view, self._link = view, link
        self._show()
        if came:
            self._ask()

    def tick(self, now_ms: int) -> None:
        # The console's rate, at most once a second: ticks come no faster.
        if now_ms - self._asked_ms >= 1000 / self.desk.feed.rate_hz - 100:
            self._ask()

    def subject(self) -> str:
        record = self._selected
        return record.id if record is not None else ""

    def clear_limits(self) -> bool:
        limited = self._wanted != _ALL
        self._want(key="", model="", outcome="")
        return limited

    def do_outcome(self) -> None:
        """The next outcome, after the last one all of them."""
        order = ("", *present.OUTCOMES)
        self._want(outcome=order[(order.index(self._wanted.outcome) + 1) % len(order)])

    def do_key(self) -> None:
        """Only the key of the selected record, or every key."""
        record = self._selected
        self._want(key="" if self._wanted.key or record is None else record.key)

    def do_model(self) -> None:
        """Only the model of the selected record, or every model."""
        record = self._selected
        self._want(model="" if self._wanted.model or record is None else record.model)

    def reason(self, action: Action) -> str:
        name, record = action.id.partition(".")[2], self._selected
        if name in ("key", "model") and not getattr(self._wanted, name):
            if record is None:
                return "no record is selected"
            return "" if getattr(record, name) else f"this record names no {name}"
        return ""

    @property
    def _selected(self) -> AuditRecord | None:
        key = self.table.cursor_key if self.table is not None else None
        return next((each for each in self._records.value or () if present.row_key(each) == key), None)

    def _want(self, **changes: str) -> None:
        wanted = msgspec.structs.replace(self._wanted, **changes)
        if wanted != self._wanted:
            self._wanted = wanted
            self._asking = False
            self._ask()
            self._show()

    def _ask(self) -> None:
        """Fetch, unless an answer is on its way still or there is nobody to ask."""
        if self._asking or self._link.state != "live":
            return
        self._asking = True
        self._asked_ms = self.now_ms
        work = self._fetch(self._wanted)
        self.run_worker(work, name="audit", group="audit", exclusive=True, exit_on_error=False)

    async def _fetch(self, wanted: AuditFilter) -> None:
        node, now_ms = self.desk.feed.node, self.desk.session.clock.wall_ms
        if node is None:
            self._asking = False
            return
        try:
            outcome = await node.call(ShowAudit(wanted=wanted, limit=NEWEST))
            fault = outcome.fault
            records = msgspec.convert(outcome.value, _Found).records if outcome.ok else None
        except FaultError as error:
            fault, records = fault_view(error.fault), None
        except msgspec.ValidationError:
            fault, records = fault_view(_UNREADABLE), None
        if wanted != self._wanted:
            return
        self._asking = False
        if records is not None:
            self._records = Section("ready", now_ms(), records)
        else:
            self._failed(fault)
        self._show()

    def _failed(self, fault: FaultView | None) -> None:
        last = self._records
        self._records = Section("failed", last.as_of_ms, last.value, fault)

    def _show(self) -> None:
        """State, sign, rows, detail."""
        records, table = self._records.value, self.table
        limited = self._wanted != _ALL
        nothing = present.EMPTY if records == () and not limited else None
        self._enter(pane_state(self.spec.title, self._records, self._link, nothing))
        self.query_one("#sign", Made).show(lambda width, *_: present.sign(self._wanted, width))
        if table is None or records is None:
            return
        self._shown = (records,)
        table.empty = "No record matches. esc shows everything." if limited else ""
        table.rows = present.rows(records, self.now_ms)
        self.show_detail()

    def show_detail(self) -> None:
        record, made = self._selected, self.query_one("#record", Made)
        made.show(None if record is None else lambda width, *_: present.detail(record, width))


_UNREADABLE: Final = Fault(
    "internal_error",
    "the node's answer cannot be read",
    "restart the node and the console, so that both run the version installed now",
)
