"""The check that runs, the last one and the schedule, as fronts see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from relaydesk.core.events import HopCheckChanged
from relaydesk.core.hopcheck.decide import decide
from relaydesk.core.hopcheck.model import Layer, Observation, Report
from relaydesk.core.hopcheck.probes import Probe
from relaydesk.core.hopcheck.report import (
    finding_view,
    layer_view,
    layer_views,
    probe_view,
    probe_views,
    summary,
)
from relaydesk.core.ports import Clock
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.hopcheck import HopCheckView, HopReportView, HopScheduleView, ProbeView
from relaydesk.engine.bus import Bus
from relaydesk.engine.jobs import Job


class Board:
    """``view`` is the section. A check that was asked for is told as it goes, a scheduled one by its end."""

    def __init__(self, clock: Clock, bus: Bus) -> None:
        self._clock = clock
        self._bus = bus
        self._running: HopCheckView | None = None
        self.report: HopReportView | None = None
        self.schedule = HopScheduleView()

    @property
    def running(self) -> bool:
        """Whether a check is under way that an operator asked for."""
        return self._running is not None

    def view(self, suggested: Sequence[Layer]) -> HopCheckView:
        """The section; ``suggested`` are the layers that the node knows by itself."""
        base = self._running or HopCheckView()
        return msgspec.structs.replace(
            base,
            report=self.report,
            schedule=self.schedule,
            suggested=tuple(layer_view(each) for each in suggested),
        )

    def begin(self, job: Job, url: str, *, long: bool, from_node: bool, lab: bool) -> Watching:
        """A check begins."""
        self._running = HopCheckView(
            running=True, job=job.id, url=safe_text(url), long=long, started_at_ms=self._clock.wall_ms()
        )
        self._changed()
        return Watching(self._show, job, from_node=from_node, lab=lab)

    def end(self, report: Report | None) -> None:
        """It is over; with a report where it came to one."""
        running, self._running = self._running, None
        if report is not None and running is not None:
            now = self._clock.wall_ms()
            self.report = report_view(
                report, str(running.url), now, now - running.started_at_ms, running.long
            )
        self._changed()

    def scheduled(self, schedule: HopScheduleView) -> None:
        """The schedule changed."""
        if schedule != self.schedule:
            self.schedule = schedule
            self._changed()

    def _show(self, **changes: object) -> None:
        if self._running is not None:
            self._running = msgspec.structs.replace(self._running, **changes)
            self._changed()

    def _changed(self) -> None:
        self._bus.publish(HopCheckChanged())


class Watching:
    """A `Watcher` that keeps the view of the check under way."""

    def __init__(self, show: Callable[..., None], job: Job, *, from_node: bool, lab: bool) -> None:
        self._show = show
        self._job = job
        self._from_node = from_node
        self._lab = lab
        self._layers: tuple[Layer, ...] = ()
        self._rows: dict[tuple[str, str], ProbeView] = {}
        self._seen: dict[str, dict[str, Observation]] = {}
        self._done = 0

    def planned(self, layers: Sequence[Layer], probes: Mapping[str, Sequence[Probe]]) -> None:
        self._layers = tuple(layers)
        self._seen = {layer.name: {} for layer in layers}
        self._rows = {
            (layer.name, probe.id): ProbeView(probe.id, layer.name, probe.title)
            for layer in layers
            for probe in probes[layer.name]
        }
        self._show(layers=tuple(layer_view(each) for each in layers), probes=tuple(self._rows.values()))

    def began(self, layer: Layer, probe: str) -> None:
        key = (layer.name, probe)
        self._rows[key] = msgspec.structs.replace(self._rows[key], state="running")
        self._show(probes=tuple(self._rows.values()))

    def ended(self, layer: Layer, observed: Observation) -> None:
        seen = self._seen[layer.name]
        seen[observed.probe] = observed
        self._rows[layer.name, observed.probe] = probe_view(layer, observed, seen)
        self._done += 1
        # What is found while the layers further in are not looked at yet may still change its place.
        report = decide(self._layers, self._seen, from_node=self._from_node, lab=self._lab)
        self._show(
            layers=layer_views(report),
            probes=tuple(self._rows.values()),
            findings=tuple(finding_view(each) for each in report.findings),
        )
        note = f"{layer.name}: {self._rows[layer.name, observed.probe].title}"
        self._job.progress(self._done, len(self._rows), note=note)


def report_view(report: Report, url: str, at_ms: int, took_ms: int, long: bool) -> HopReportView:
    """A report as fronts see it."""
    shown: SafeText = safe_text(url)
    return HopReportView(
        url=shown,
        at_ms=at_ms,
        took_ms=max(0, took_ms),
        ok=report.ok,
        long=long,
        summary=summary(report),
        layers=layer_views(report),
        probes=probe_views(report),
        findings=tuple(finding_view(each) for each in report.findings),
    )
