"""The third step: the verdict, what was found, ranked, and what was not tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relaydesk.core.view.amounts import duration, plural
from relaydesk.core.view.hopcheck import FindingView, HopReportView, LayerView, ProbeView, Severity
from relaydesk.surfaces.console.panes.hopcheck.compare import changes
from relaydesk.surfaces.console.panes.hopcheck.probing import counted
from relaydesk.surfaces.console.panes.hopcheck.remedy import code_line, remedy_lines
from relaydesk.surfaces.console.panes.hopcheck.remedy import copied as remedy_text
from relaydesk.surfaces.console.panes.keys.present import day_time
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph, sentence
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import clock_time
from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.spans import Line, Span, line_text

_ROOM: Final = 12
_LAYER: Final = 12
# Cells of a severity: its symbol, its word, and the gap after it.
_SEVERITY: Final = 11
TONES: Final[dict[Severity, str]] = {"error": "error", "warning": "warn", "info": "info"}
_WORDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
_MOST_CHANGES: Final = 4
# For so long a time of day says enough.
_TODAY_MS: Final = 12 * 3_600_000


def verdict(report: HopReportView, before: HopReportView | None, now_ms: int, width: int) -> tuple[Line, ...]:
    """The sentence, of what it is the verdict, and what is another than before."""
    made = [*marked("ok" if report.ok else _worst(report), sentence(report.summary), width, "strong")]
    took = duration(max(1, report.took_ms // 1000))
    at = clock_time(report.at_ms) if now_ms - report.at_ms < _TODAY_MS else day_time(report.at_ms)
    said = f"{report.url} at {at}, in {took}: {counted(report.probes)}."
    made += paragraph(said, width, "dim", indent=2)
    for each in changes(report, before)[:_MOST_CHANGES]:
        made += marked(each.tone, each.text, width)
    return tuple(made)


def _worst(report: HopReportView) -> str:
    return "error" if any(each.severity == "error" for each in report.findings) else "warn"


def capital(text: str) -> str:
    """A title's beginning."""
    return text[:1].upper() + text[1:]


def count(report: HopReportView) -> int:
    """How many things there are to look at: the findings, and what was not tested."""
    return len(report.findings) + bool(untested(report.probes))


def listing(report: HopReportView, at: int, width: int, most: int) -> tuple[Line, ...]:
    """At most ``most`` lines around the one that is looked at; none where there is only one thing."""
    lines = [_item(each, at == place, width) for place, each in enumerate(report.findings)]
    left = untested(report.probes)
    if left:
        lines.append(_line("–", "dim", "What was not tested", "", at == len(lines), width))
    if len(lines) < 2:
        return ()
    first = max(0, min(at - most + 2, len(lines) - most))
    return tuple(lines[first : first + most])


def _item(finding: FindingView, chosen: bool, width: int) -> Line:
    tone = TONES[finding.severity]
    mark = f"{MARKS[tone]} {_WORDS[finding.severity]}"
    return _line(mark, tone, capital(finding.title), finding.layer, chosen, width)


def _line(mark: str, tone: str, text: str, layer: str, chosen: bool, width: int) -> Line:
    room = width - 2 - _SEVERITY - (_LAYER if layer else 0)
    return (
        Span("▸ " if chosen else "  ", "accent"),
        Span(fit(mark, _SEVERITY), tone),
        Span(fit(text, max(1, room)), "strong" if chosen else ""),
        Span(fit(layer, _LAYER) if layer else "", "dim"),
    )


def page(report: HopReportView, at: int, width: int, copy_key: str = "c") -> tuple[Line, ...]:
    """All about the thing that is looked at."""
    if at < len(report.findings):
        titled = count(report) < 2
        return finding_lines(report.findings[at], report.layers, width, copy_key, titled=titled)
    return untested_lines(report, width)


def finding_lines(
    finding: FindingView, layers: Sequence[LayerView], width: int, copy_key: str = "c", *, titled: bool = True
) -> tuple[Line, ...]:
    """Which layer, what callers make of it, what to change, and the exchange that shows it.

    ``titled``: begin with what it is, where no list says it.
    """
    tone = TONES[finding.severity]
    layer = next((each for each in layers if each.name == finding.layer), None)
    where = f"{finding.layer}, {layer.url}" if layer is not None else finding.layer
    made: list[Line] = [*marked(tone, sentence(capital(finding.title)), width, "strong")] if titled else []
    made += fact("layer", where or "none can be blamed", width, room=_ROOM)
    made += fact("product", finding.product or "not recognised", width, room=_ROOM)
    made += fact("callers", sentence(finding.effect), width, room=_ROOM)
    if finding.remedy:
        made += [NOTHING, _title("What to change", f"{copy_key} copies it", width)]
        made += remedy_lines(finding.remedy, width)
    if finding.evidence:
        made += [NOTHING, _title("Evidence", "as it was seen, secrets cut", width)]
        for line in finding.evidence:
            made += code_line(line, width, "│ ", "dim")
    return tuple(made)


def _title(text: str, note: str, width: int) -> Line:
    fits = cells(text) + cells(note) + 2 <= width
    return (Span(text, "strong"), Span(f"  {note}" if fits else "", "dim"))


def untested(probes: Sequence[ProbeView]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Probes that were not made: title, why, and the layers where that is so."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in probes:
        if each.state == "not_tested":
            found.setdefault((each.title, each.evidence), []).append(each.layer)
    return tuple((title, why, tuple(layers)) for (title, why), layers in found.items())


def untested_lines(report: HopReportView, width: int) -> tuple[Line, ...]:
    """What was not tested, under the reason for it; without any, that everything was."""
    left = untested(report.probes)
    if not left:
        return marked("ok", "Every probe was made at every layer.", width)
    made: list[Line] = [(Span("Not tested", "strong"), Span("  nothing is concluded from these", "dim"))]
    everywhere = {each.name for each in report.layers}
    by_reason: dict[str, list[str]] = {}
    for title, why, layers in left:
        at = "" if set(layers) == everywhere else f" (at {', '.join(layers)})"
        by_reason.setdefault(why, []).append(f"{title}{at}")
    for why, titles in by_reason.items():
        made += [NOTHING, *paragraph(sentence(why[:1].upper() + why[1:]) or "Not said why.", width)]
        for title in titles:
            made += marked("dim", title, width)
    if not report.long:
        made += [NOTHING, *paragraph("b, then l: run again with the long silences.", width, "dim")]
    return tuple(made)


def copied(report: HopReportView, at: int) -> tuple[str, str]:
    """What is copied of the thing that is looked at, and what that is called: what to change, or the page."""
    if at < len(report.findings) and report.findings[at].remedy:
        text = remedy_text(report.findings[at].remedy)
        return text, f"what to change, {plural(len(text.splitlines()), 'line')}"
    return plain(page(report, at, 100))


def plain(lines: Sequence[Line]) -> tuple[str, str]:
    """Lines as a text, and how many there are."""
    text = "".join(f"{line_text(line).rstrip()}\n" for line in lines)
    return text, plural(len(lines), "line")


def told(report: HopReportView) -> str:
    """What the toast of a check that ended elsewhere says."""
    found = plural(len(report.findings), "finding")
    return sentence(report.summary) if report.ok else f"{sentence(report.summary)} {found}: H shows them."
