"""A fit report as a bar and sentences: what a model needs, what is free, what would help."""

from __future__ import annotations

from typing import Final

from relaydesk.core.pool.fit import FitReport
from relaydesk.core.view.amounts import mib, plural
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph, sentence
from relaydesk.surfaces.console.widgets.bar import Part, legend, limit_line, stacked_bar
from relaydesk.surfaces.console.widgets.spans import Line

# A bar has five fillings: what is small and of one kind goes together.
_GROUPS: Final = (
    ("weights", "part-1", ("weights",)),
    ("KV cache", "part-2", ("kv", "recurrent")),
    ("compute", "part-3", ("compute",)),
    ("helpers", "part-5", ("projector", "draft")),
    ("engine, margin", "part-4", ("overhead", "margin")),
)
_KNOWN: Final = {name for _, _, names in _GROUPS for name in names}


def parts(report: FitReport) -> tuple[Part, ...]:
    """The components in groups; they add up to the need. One that is not known here goes with the engine."""
    found = []
    for label, tone, names in _GROUPS:
        last = "margin" in names
        amount = sum(
            each.mib for each in report.components if each.name in names or (last and each.name not in _KNOWN)
        )
        if amount:
            found.append(Part(label, amount, tone))
    return tuple(found)


def lines(report: FitReport, width: int, *, loaded: bool = False, ascii: bool = False) -> tuple[Line, ...]:
    """The verdict, the bar with the mark of what is free, the parts, and the smallest change that helps.

    Of a loaded model the report says what is free without it.
    """
    tone, verdict = ("ok", "loaded") if loaded else _verdict(report)
    shown = parts(report)
    # Need and free memory on one scale, so that their lengths can be compared.
    scale = float(max(report.need_mib, report.free_mib, 1))
    free = f"{mib(report.free_mib)} {'without it' if loaded else 'free'}"
    mark = limit_line((Part("", scale),), report.free_mib, width, free, tone="strong", ascii=ascii)
    found: list[Line] = [*marked(tone, verdict, width)]
    found += () if loaded else paragraph(sentence(report.reason), width, "dim", indent=2)
    found += [NOTHING, stacked_bar(shown, scale, width, ascii=ascii), mark, NOTHING]
    found += legend(shown, width, mib, ascii=ascii)
    found += [NOTHING, *_basis(report, width)]
    if report.suggestion is not None and not loaded:
        found += [NOTHING, *marked("info", f"Next: {sentence(report.suggestion.sentence)}", width, "")]
        if command(report):
            found += paragraph(f"f changes the settings, or: {command(report)}", width, "dim", indent=2)
    return tuple(found)


def _verdict(report: FitReport) -> tuple[str, str]:
    if report.fits:
        names = " and ".join(report.unloads)
        gone = "is unloaded, by itself" if len(report.unloads) == 1 else "are unloaded, by themselves"
        return "ok", f"fits once {names} {gone}" if names else "fits"
    if report.ever_fits:
        return "warn", f"does not fit now: {mib(report.need_mib - report.free_mib)} too little is free"
    over = f"{mib(report.need_mib - report.total_mib)} more than there is in all"
    if report.settings_help:
        return "warn", f"does not fit as it is set: {over}"
    return "error", f"can never fit here: {over}"


def _basis(report: FitReport, width: int) -> tuple[Line, ...]:
    at_once = f"{plural(report.slots, 'request')} at once, {report.ctx} tokens each"
    known = "measured when it was loaded" if report.measured else "an estimate until its first load"
    spill = f"{mib(report.spill_mib)} of it run from RAM, which is slow" if report.spill_mib else ""
    return (
        *fact("needs", f"{mib(report.need_mib)} of {mib(report.total_mib)}, {known}", width),
        *fact("for", at_once, width),
        *fact("beside", spill, width, "warn"),
    )


def changes(report: FitReport) -> dict[str, object]:
    """The settings that the suggestion changes; empty where settings alone are not enough."""
    return {key: new for key, _, new in _pairs(report)}


def words(report: FitReport) -> str:
    """The changes as people read them: ``slots 8 → 2, ctx 8192 → 4096``."""
    return ", ".join(f"{key.replace('_', '-')} {old} → {new}" for key, old, new in _pairs(report))


def unfixable(report: FitReport) -> str:
    """Why no change of settings is to be made; empty where one is."""
    if report.fits:
        return f"{report.model} fits already"
    if report.suggestion is not None and report.suggestion.change == "wait":
        return f"nothing to change: {report.suggestion.sentence}"
    return "" if _pairs(report) else "no setting would make it fit: enter shows its report"


def _pairs(report: FitReport) -> list[tuple[str, object, object]]:
    """Settings that change, as they are and as they would be."""
    change = report.suggestion
    # With less memory than it takes even then, the settings would be given up for nothing.
    if change is None or change.change == "wait" or change.more_mib:
        return []
    pairs: tuple[tuple[str, object, object], ...] = (
        ("ctx", report.ctx, change.ctx),
        ("slots", report.slots, change.slots),
        ("kv_k", report.kv_k, change.kv_k),
        ("kv_v", report.kv_v, change.kv_v),
    )
    return [pair for pair in pairs if pair[1] != pair[2]]


def command(report: FitReport) -> str:
    """The command line that makes the change; empty where no setting helps."""
    pairs = " ".join(f"{key.replace('_', '-')}={value}" for key, value in changes(report).items())
    return f"relaydesk model set {report.model} {pairs}" if pairs else ""
