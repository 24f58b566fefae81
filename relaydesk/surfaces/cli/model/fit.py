"""``relaydesk model fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from relaydesk.core.commands import FitModel
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.pool.need import amount
from relaydesk.core.text import safe_text
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import Tone, columns, mark, paint, print_json, say, shares, table, wrap

# Told apart by shape, since colour alone tells nobody who cannot see it.
_FILLS: Final = ("█", "▓", "▒", "░", "◆", "◇", "●", "○")
_NAMES: Final = {
    "weights": "weights",
    "kv": "KV cache",
    "recurrent": "recurrent state",
    "compute": "compute buffer",
    "projector": "projector",
    "draft": "draft model",
    "overhead": "engine",
    "margin": "margin",
}
_WIDEST: Final = 72


@click.command()
@click.argument("name")
@json_option
@attach_option
def fit(name: str, as_json: bool, attach: Path | None) -> None:
    """What the model NAME needs, what there is, and the smallest change that would make it fit.

    Exit code 0 whether it fits or not; `fits` in the JSON object says which.
    """
    value = find_node(attach).call(FitModel(name=name)).value
    if as_json:
        print_json(value)
        return
    for line in _lines(answer(value, FitReport)):
        say(line)


def _lines(report: FitReport) -> list[str]:
    name = safe_text(report.model)
    verdict, tone = _verdict(report)
    lines = [f"{mark(tone)} {paint(name, 'bold')} {paint(verdict, tone)}", ""]
    lines += bars(report, _WIDEST)
    amounts = [_amount(part.mib, report) for part in report.components]
    wide = max(map(len, amounts), default=0)
    rows = [
        (fill, _NAMES.get(part.name, safe_text(part.name)), text.rjust(wide))
        for fill, part, text in zip(_FILLS, report.components, amounts, strict=False)
    ]
    lines += ["", *table(("", "PART", "NEEDS".rjust(wide)), rows), ""]
    basis = "measured on its last load" if report.measured else "an estimate until its first load"
    requests = "1 request" if report.slots == 1 else f"{report.slots} requests"
    lines += wrap(f"For {requests} at once with {report.ctx} tokens each; {basis}.")
    if beyond := beyond_training(report):
        lines += wrap(f"{beyond}.")
    lines += wrap(f"{safe_text(report.reason, 400)}.")
    if report.spill_mib:
        lines += wrap(f"{_amount(report.spill_mib, report)} of it would run from RAM, which is slow.")
    if report.suggestion is not None:
        lines += ["", *wrap(f"Next: {safe_text(report.suggestion.sentence, 400)}.")]
        lines += _commands(report)
    return lines


def _verdict(report: FitReport) -> tuple[str, Tone]:
    if report.fits:
        return "fits", "good"
    if report.ever_fits:
        return "does not fit now", "warn"
    if report.settings_help:
        return "does not fit with these settings", "warn"
    return "can never fit here", "bad"


def beyond_training(report: FitReport) -> str:
    """The warning for a context that the model was not trained for, else empty."""
    if not 0 < report.trained_ctx < report.ctx:
        return ""
    return (
        f"{report.ctx} tokens are more than the {report.trained_ctx} that {safe_text(report.model)} was "
        "trained for: answers may make no sense beyond those"
    )


def _amount(mib: int, report: FitReport) -> str:
    """In the unit of the need: what is compared is said in one unit."""
    return amount(mib, report.need_mib)


def bars(report: FitReport, length: int) -> list[str]:
    """Need and room on one scale: what is needed by component, what is free of all there is.

    ``length`` cells, or as many as the terminal has for them.
    """
    there = f"{_amount(report.free_mib, report)} of {_amount(report.total_mib, report)}"
    room = columns() - len("  needs ") - 1 - len(there)
    length = max(10, min(length, room))
    scale = max(report.need_mib, report.total_mib, 1)
    lengths = shares([part.mib for part in report.components], round(report.need_mib * length / scale))
    need = "".join(fill * count for fill, count in zip(_FILLS, lengths, strict=False))
    total = max(1, round(report.total_mib * length / scale)) if report.total_mib else 0
    free = min(total, round(report.free_mib * length / scale))
    memory = "─" * (total - free) + "━" * free
    return [
        f"  {paint('needs', 'dim')} {need.ljust(length)} {_amount(report.need_mib, report)}",
        f"  {paint('free ', 'dim')} {memory.ljust(length)} {there}",
    ]


def _commands(report: FitReport) -> list[str]:
    """The commands that make the suggested change: what must be unloaded, then the settings that change."""
    change, name = report.suggestion, safe_text(report.model)
    if change is None:
        return []
    lines = [f"  relaydesk model unload {safe_text(other)}" for other in change.unload]
    pairs = (
        ("ctx", report.ctx, change.ctx),
        ("slots", report.slots, change.slots),
        ("kv-k", report.kv_k, change.kv_k),
        ("kv-v", report.kv_v, change.kv_v),
    )
    options = " ".join(f"--{option} {new}" for option, old, new in pairs if old != new)
    return [*lines, f"  relaydesk model set {name} {options}"] if options else lines
