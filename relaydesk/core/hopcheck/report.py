"""A report as text, as JSON, and as what fronts see."""

from __future__ import annotations

from typing import Any

from relaydesk.core.hopcheck.decide import failing
from relaydesk.core.hopcheck.model import Finding, Layer, Observation, Report
from relaydesk.core.hopcheck.probes import BY_ID, SILENCE, Probe, silence_probe
from relaydesk.core.hopcheck.sight import sight
from relaydesk.core.text import safe_text
from relaydesk.core.view.hopcheck import FindingView, LayerView, ProbeView

MOST_LINE = 400


def document(report: Report) -> dict[str, Any]:
    """What ``check-hop --json`` prints (design §4): ``ok``, ``findings``, beside them layers and probes."""
    return {
        "ok": report.ok,
        "findings": [_told(each) for each in report.findings],
        "layers": [
            {"name": each.name, "url": str(each.url), "kind": each.kind, "product": each.product}
            for each in layer_views(report)
        ],
        "probes": [
            {"id": each.id, "layer": each.layer, "state": each.state, "evidence": str(each.evidence)}
            for each in probe_views(report)
        ],
    }


def summary(report: Report) -> str:
    """One sentence."""
    if not report.findings:
        return "The marker reaches callers, and nothing else was found."
    first = report.findings[0]
    more = len(report.findings) - 1
    also = f", and {more} more finding{'' if more == 1 else 's'}" if more else ""
    return f"{first.title[:1].upper()}{first.title[1:]}{also}."


def layer_views(report: Report) -> tuple[LayerView, ...]:
    """The layers as fronts see them."""
    return tuple(
        layer_view(each, report.products.get(each.name, ""), inside=each.name in report.inside)
        for each in report.layers
    )


def layer_view(layer: Layer, product: str = "", *, inside: bool = False) -> LayerView:
    """One layer as fronts see it."""
    return LayerView(layer.name, safe_text(layer.url), layer.kind, product, inside)


def probe_views(report: Report) -> tuple[ProbeView, ...]:
    """Every probe that was made or left out, by layer."""
    by_layer: dict[str, dict[str, Observation]] = {layer.name: {} for layer in report.layers}
    for each in report.observations:
        by_layer[each.layer][each.probe] = each
    return tuple(
        probe_view(layer, observed, by_layer[layer.name])
        for layer in report.layers
        for observed in by_layer[layer.name].values()
    )


def probe_view(layer: Layer, observed: Observation, seen: dict[str, Observation]) -> ProbeView:
    """One probe that ended; ``seen`` is all that was seen at its layer so far."""
    wrong = failing(layer, seen).get(observed.probe)
    state: Any = "not_tested" if observed.untested else "failed" if wrong is not None else "passed"
    said = observed.untested or wrong or sight(observed)
    return ProbeView(
        observed.probe,
        layer.name,
        probe_of(observed.probe).title,
        state,
        safe_text(said, MOST_LINE),
        observed.took_ms,
    )


def finding_view(finding: Finding) -> FindingView:
    """A finding as fronts see it."""
    return FindingView(
        code=finding.code,
        severity=finding.severity,
        title=finding.title,
        layer=finding.layer,
        product=finding.product,
        evidence=tuple(safe_text(line, MOST_LINE) for line in finding.evidence),
        effect=finding.effect,
        remedy=finding.remedy,
    )


def probe_of(probe_id: str) -> Probe:
    """A probe by its id, silences of any length too."""
    if probe_id.startswith(f"{SILENCE}-"):
        return silence_probe(float(probe_id.removeprefix(f"{SILENCE}-")))
    return BY_ID[probe_id]


def _told(finding: Finding) -> dict[str, str]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "layer": finding.layer,
        "product": finding.product,
        "title": finding.title,
        "evidence": "\n".join(safe_text(line, MOST_LINE) for line in finding.evidence),
        "effect": finding.effect,
        "remedy": finding.remedy,
    }
