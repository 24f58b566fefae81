"""The wizard's three steps as widgets, one of them shown."""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.widget import Widget

from relaydesk.core.view.hopcheck import HopCheckView, HopReportView
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.panes.hopcheck import layers, probing, result
from relaydesk.surfaces.console.panes.hopcheck.memory import Memory
from relaydesk.surfaces.console.panes.hopcheck.standing import STEPS, Step
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.panes.prose import NOTHING, marked
from relaydesk.surfaces.console.widgets.live_table import LiveTable
from relaydesk.surfaces.console.widgets.spans import Line

_FOCUSED: Final[dict[Step, str]] = {"layers": "#layers", "probes": "#list", "result": "#page"}
# Rows of a terminal from which on there is room for whole paragraphs.
_ROOMY: Final = 24


class Body(Container):
    """Draws what it is told to; keeps only where its tables' cursors are."""

    def compose(self) -> ComposeResult:
        with Vertical(id="layers-step", classes="step"):
            yield Made(id="intro")
            yield Made(id="said")
            yield LiveTable(layers.COLUMNS, id="layers")
            yield Made(id="foot")
        with Vertical(id="probes-step", classes="step"):
            yield Made(id="progress")
            yield ListDetail(LiveTable(probing.columns((), 0), id="list"), Made(id="probe"))
            yield Made(id="legend")
        with Vertical(id="result-step", classes="step"):
            yield Made(id="verdict")
            yield Made(id="listing")
            with VerticalScroll(id="page"):
                yield Made(id="finding")

    def turn(self, step: Step | None) -> None:
        """Show this step and no other; None shows none."""
        for each in STEPS:
            self.query_one(f"#{each}-step").display = each == step

    def take_keys(self, step: Step) -> None:
        """Give the keyboard to what the step is about."""
        if step == "probes" and self.query_one(ListDetail).opened:
            return
        self.call_after_refresh(self.query_one(_FOCUSED[step], Widget).focus, scroll_visible=False)

    @property
    def layer_name(self) -> str:
        """The name of the layer under the cursor."""
        return self.query_one("#layers", LiveTable).cursor_key or ""

    def point(self, layer: str) -> None:
        """Put the cursor on a layer."""
        self.query_one("#layers", LiveTable).move_to(layer)

    def close_probe(self) -> bool:
        """Back from one probe to all of them; False where all are shown."""
        return self.query_one(ListDetail).close()

    @property
    def probe(self) -> tuple[Line, ...]:
        """What is said of the probe under the cursor."""
        return self.query_one("#probe", Made).lines

    def show_layers(self, check: HopCheckView, memory: Memory, said: tuple[str, str], now_ms: int) -> None:
        """``said``: tone and sentence of what went wrong before."""
        plan, short, (tone, text) = memory.plan, self._short, said
        self.query_one("#intro", Made).show(lambda width, *_: layers.intro(width, short=short))
        self.query_one("#said", Made).show(
            (lambda width, *_: (*marked(tone, text, width), NOTHING)) if text else None
        )
        table = self.query_one("#layers", LiveTable)
        table.rows = layers.rows(plan.entries(check))
        table.styles.height = len(table.rows) + 1
        self.query_one("#foot", Made).show(
            lambda width, *_: layers.foot(plan, check, now_ms, width, short=short)
        )

    def show_probes(self, check: HopCheckView, memory: Memory, now_ms: int) -> None:
        """Those of the check that runs or is asked for, else those of the last one."""
        live = check.running or memory.asked
        shown: HopCheckView | HopReportView = check if live or check.report is None else check.report
        places, probes = (shown.layers, shown.probes) if check.running or not live else ((), ())
        since, table = memory.since, self.query_one("#list", LiveTable)
        width = table.line_width or self.app.size.width
        columns = probing.columns(places, width)
        if table.columns != columns:
            table.columns = columns
        table.rows = probing.rows(places, probes, since, now_ms, width)
        chosen, started_ms = table.cursor_key or "", check.started_at_ms
        self.query_one("#progress", Made).show(
            (
                lambda width, _height, ascii: probing.progress(
                    probes, check.findings, started_ms, now_ms, width, ascii=ascii
                )
            )
            if live
            else (lambda width, *_: marked("dim", f"{probing.counted(probes)}.", width))
        )
        worded = probing.worded(len(places), width)
        self.query_one("#legend", Made).show(None if worded else (lambda *_: probing.legend()))
        self.query_one("#probe", Made).show(
            lambda width, *_: probing.detail(chosen, places, probes, since, now_ms, width)
        )

    def show_result(self, report: HopReportView, memory: Memory, at: int, key: str, now_ms: int) -> None:
        """``at``: what is looked at. ``key``: the one that copies."""
        before, most = memory.before, 3 if self._short else 6
        self.query_one("#verdict", Made).show(lambda width, *_: result.verdict(report, before, now_ms, width))
        self.query_one("#listing", Made).show(lambda width, *_: result.listing(report, at, width, most))
        self.query_one("#finding", Made).show(lambda width, *_: result.page(report, at, width, key))

    def to_top(self) -> None:
        """From the beginning of what is looked at."""
        self.query_one("#page").scroll_home(animate=False)

    @property
    def _short(self) -> bool:
        return self.app.size.height < _ROOMY
