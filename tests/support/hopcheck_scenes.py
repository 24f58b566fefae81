"""Views of the check of an edge as nodes show them: nothing yet, under way, found, clean, from inside."""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.probes import LONG_UNTESTED, SILENCES, WEBSOCKET_UNTESTED, probes_of
from relaydesk.core.text import safe_text
from relaydesk.core.view.hopcheck import (
    FindingView,
    HopCheckView,
    HopReportView,
    HopScheduleView,
    LayerView,
    ProbeState,
    ProbeView,
)

NOW_MS: Final = 1_764_500_000_000
PUBLIC: Final = safe_text("https://node.example.org")

LAYERS: Final = (
    LayerView("loopback", safe_text("http://127.0.0.1:8384"), "loopback", "relaydesk"),
    LayerView("lan", safe_text("http://192.168.1.20:8384"), "lan", "relaydesk"),
    LayerView("nginx", safe_text("http://127.0.0.1:8080"), "via", "nginx"),
    LayerView("public", PUBLIC, "public", "nginx"),
)
SCHEDULE: Final = HopScheduleView(21_600.0, PUBLIC, NOW_MS + 9_000_000, NOW_MS - 12_600_000, True)

_SEEN: Final = {
    "name": "203.0.113.7, an address of the world",
    "reach": "answered in 12 ms",
    "tls": "trusted, valid for 61 more days; HTTP/2 is offered",
    "version": "9.10, with the marker since 9.1",
    "refusal": "400 relay_bad_target, marked",
    "error": "404 relay_unknown_target and 502, marked",
    "success": "200, marked",
    "preflight": "204: any origin, all of the relay's headers",
    "exposed": "X-Zs-Relay-Hop is in Access-Control-Expose-Headers",
    "stream": "6 chunks, 200 ms apart as they were sent",
    "body": "12 MiB were taken",
    "compression": "not compressed",
    "headers": "all arrived, one of them twice as it was sent",
    "http2": "400 relay_bad_target, marked",
}
_LOST: Final = {
    "refusal": "400 relay_bad_target without the marker",
    "error": "404 relay_unknown_target and 502 without the marker",
    "success": "200 without the marker",
    "exposed": "X-Zs-Relay-Hop is exposed, and missing",
    "http2": "400 relay_bad_target without the marker",
}


def probes(layer: LayerView, *, lost: bool = False) -> tuple[ProbeView, ...]:
    """A layer's probes, ended: all well, or with the marker gone."""
    return tuple(_ended(layer, each.id, each.title, lost) for each in probes_of(layer.kind, SILENCES))


def _ended(layer: LayerView, probe: str, title: str, lost: bool) -> ProbeView:
    if probe.startswith("silence") or probe == "websocket":
        why = WEBSOCKET_UNTESTED if probe == "websocket" else LONG_UNTESTED
        return ProbeView(probe, layer.name, title, "not_tested", safe_text(why))
    bad = lost and probe in _LOST
    state: ProbeState = "failed" if bad else "passed"
    return ProbeView(probe, layer.name, title, state, safe_text(_LOST[probe] if bad else _SEEN[probe]), 14)


REMEDY: Final = """\
Take out what removes the marker, wherever it is in front of the node:

```nginx remove
proxy_hide_header X-Zs-Relay-Hop;
```

Add in the `location` (or `server`) that has `proxy_pass` to the node (tested):

```nginx add
add_header X-Zs-Relay-Hop $upstream_http_x_zs_relay_hop always;
```"""

STRIPPED: Final = FindingView(
    code="marker_removed",
    severity="error",
    title="nginx removes X-Zs-Relay-Hop",
    layer="nginx",
    product="nginx",
    evidence=tuple(
        safe_text(line, 400)
        for line in (
            "POST http://127.0.0.1:8080/v1/zs/relay HTTP/1.1",
            "X-Zs-Relay-Target: check",
            "HTTP/1.1 400",
            "Server: nginx/1.22.1",
            "Content-Type: application/json",
            "one layer further in (lan) the same answer has X-Zs-Relay-Hop: 1",
        )
    ),
    effect="When a target behind this node fails with a bare 502, callers charge this node for it: the hop "
    "marker is missing, so something in front of the relay answered in its place. Three such failures in a "
    "row and they pass it over for 10 minutes.",
    remedy=REMEDY,
)
INSIDE: Final = FindingView(
    code="seen_from_inside",
    severity="info",
    title="node.example.org leads to the inside here",
    layer="",
    product="",
    evidence=(safe_text("node.example.org is 192.168.1.20 here, an address of this machine"),),
    effect="What the world sees cannot be told from here, so nobody is blamed.",
    remedy="Run the check on a machine elsewhere: `relaydesk check-hop --new-nonce` here prints the command.",
)


def _report(found: tuple[FindingView, ...], shown: tuple[ProbeView, ...]) -> HopReportView:
    summary = found[0].title if found else "The marker reaches the world; nothing was found."
    return HopReportView(PUBLIC, NOW_MS - 60_000, 3_400, not found, False, summary, LAYERS, shown, found)


_GOOD: Final = tuple(row for layer in LAYERS for row in probes(layer))
_BAD: Final = tuple(row for layer in LAYERS for row in probes(layer, lost=layer.name in ("nginx", "public")))

IDLE: Final = HopCheckView(schedule=SCHEDULE, suggested=(LAYERS[0], LAYERS[1], LAYERS[3]))
CLEAN: Final = HopCheckView(report=_report((), _GOOD), schedule=SCHEDULE, suggested=IDLE.suggested)
FOUND: Final = HopCheckView(report=_report((STRIPPED,), _BAD), schedule=SCHEDULE, suggested=IDLE.suggested)
FROM_INSIDE: Final = HopCheckView(report=_report((INSIDE,), _GOOD), suggested=IDLE.suggested)


def under_way(done: int) -> HopCheckView:
    """A check of which ``done`` probes have ended and the next four run."""
    rows = tuple(
        row
        if at < done
        else ProbeView(row.id, row.layer, row.title, "running" if at < done + 4 else "waiting")
        for at, row in enumerate(_BAD)
    )
    return HopCheckView(
        running=True,
        job="job_0123456789ab",
        url=PUBLIC,
        started_at_ms=NOW_MS - 1_200,
        layers=LAYERS,
        probes=rows,
        schedule=SCHEDULE,
        suggested=IDLE.suggested,
    )
