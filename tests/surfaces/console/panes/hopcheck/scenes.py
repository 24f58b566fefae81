"""Checks as the wizard is shown them: those of `tests.support.hopcheck_scenes`, a bad day, and malice."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from relaydesk.core.text import safe_text
from relaydesk.core.view.hopcheck import (
    FindingView,
    HopCheckView,
    HopReportView,
    HopScheduleView,
    LayerView,
    ProbeView,
)
from relaydesk.core.view.sections import JobsView, JobView
from tests.contract.rigs import HOSTILE
from tests.support.hopcheck_scenes import (
    CLEAN,
    FOUND,
    IDLE,
    LAYERS,
    NOW_MS,
    PUBLIC,
    SCHEDULE,
    STRIPPED,
    probes,
    under_way,
)
from tests.surfaces.console.panes.network_scenes import sections
from tests.surfaces.console.stage import Desk

replace: Final = msgspec.structs.replace
EDGE: Final = LayerView("edge", safe_text("https://edge.example.org"), "via", "Cloudflare")
BUFFERED: Final = FindingView(
    code="stream_buffered",
    severity="warning",
    title="Cloudflare holds streams back",
    layer="edge",
    product="Cloudflare",
    evidence=tuple(
        safe_text(line, 400)
        for line in (
            "POST https://edge.example.org/v1/zs/relay HTTP/2",
            "HTTP/2 200",
            "cf-ray: 8f1c…",
            "6 chunks, sent 200 ms apart, came in one piece after 1004 ms",
        )
    ),
    effect="Callers wait for whole answers; those that give up after a while do so here.",
    remedy="Switch off response buffering for `/v1/zs/*` in the zone's network settings (not tested here).",
)
assert FOUND.report is not None
BAD: Final = replace(
    FOUND.report,
    at_ms=NOW_MS - 5_000,
    layers=(*LAYERS[:3], EDGE, LAYERS[3]),
    findings=(STRIPPED, BUFFERED),
    summary="nginx removes X-Zs-Relay-Hop, and 1 more finding.",
    probes=(*FOUND.report.probes, *probes(EDGE, lost=True)),
)
FAILING: Final = HopScheduleView(21_600.0, PUBLIC, NOW_MS + 600_000, NOW_MS - 30_000, False)


def with_report(report: HopReportView, **changes: Any) -> HopCheckView:
    """A check at rest whose last one was this."""
    return HopCheckView(report=report, schedule=SCHEDULE, suggested=IDLE.suggested, **changes)


def later(report: HopReportView, seconds: int = 45) -> HopReportView:
    """The same, of a run after that."""
    return replace(report, at_ms=report.at_ms + 1000 * seconds)


def hostile() -> HopCheckView:
    """What somebody would show who means harm, in every text that is not our own."""
    texts = tuple(safe_text(text) for text in HOSTILE)
    layers = tuple(LayerView(f"l{at}", text, "via", "nginx") for at, text in enumerate(texts[:4]))
    shown = tuple(ProbeView("refusal", layer.name, "the marker", "failed", texts[0]) for layer in layers)
    finding = replace(STRIPPED, evidence=texts, layer="l0")
    report = HopReportView(
        texts[0], NOW_MS, 9, False, False, "Somebody is hostile.", layers, shown, (finding,)
    )
    return HopCheckView(report=report, suggested=layers)


def jobs(state: Any, **changes: Any) -> JobsView:
    """The job of `under_way`."""
    return JobsView((JobView("job_0123456789ab", "check-hop", str(PUBLIC), state, NOW_MS, **changes),))


def at_desk(desk: Desk, check: HopCheckView) -> None:
    """A node in the network, at the time of the scenes."""
    desk.clock.set_wall_ms(NOW_MS)
    desk.values |= sections(NOW_MS) | {"hopcheck": check}


__all__ = ["CLEAN", "FOUND", "IDLE", "LAYERS", "NOW_MS", "PUBLIC", "STRIPPED", "under_way"]
