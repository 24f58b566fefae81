"""``relaydesk model fit``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import click

from relaydesk.core.commands import FitModel
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.text import safe_text
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import Tone, mark, mib, paint, print_json, say, table

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
_LABEL: Final = 6


@click.command()
@click.argument("name")
@json_option
@attach_option
def fit(name: str, as_json: bool, attach: Path | None) -> None:
    """What the model NAME needs, what there is, and the smallest change that would make it fit."""
    value = find_node(attach).call(FitModel(name=name)).value
    if as_json:
        print_json(value)
        return
    for line in _lines(answer(value, FitReport)):
        say(line)


def _lines(report: FitReport) -> list[str]:
    name = safe_text(report.model)
    verdict = "fits" if report.fits else "does not fit now" if report.ever_fits else "can never fit here"
    tone: Tone = "good" if report.fits else "warn" if report.ever_fits else "bad"
    lines = [f"{mark(tone)} {paint(name, 'bold')} {paint(verdict, tone)}", ""]
    lines += bars(report, min(_WIDEST, shutil.get_terminal_size().columns - _LABEL - 14))
    rows = [
        (fill, _NAMES.get(part.name, safe_text(part.name)), mib(part.mib))
        for fill, part in zip(_FILLS, report.components, strict=False)
    ]
    lines += ["", *table(("", "PART", "NEEDS"), rows), ""]
    basis = "measured on its last load" if report.measured else "an estimate until its first load"
    requests = "1 request" if report.slots == 1 else f"{report.slots} requests"
    lines.append(f"For {requests} at once with {report.ctx} tokens each; {basis}.")
    lines.append(f"{safe_text(report.reason, 400)}.")
    if report.spill_mib:
        lines.append(f"{mib(report.spill_mib)} of it would run from RAM, which is slow.")
    if report.suggestion is not None:
        lines.append(f"Next: {safe_text(report.suggestion.sentence, 400)}.")
        lines += _command(report)
    return lines


def bars(report: FitReport, columns: int) -> list[str]:
    """Need and room on one scale: what is needed by component, what is free of all there is."""
    columns = max(10, columns)
    scale = max(report.need_mib, report.total_mib, 1)
    lengths = shares([part.mib for part in report.components], round(report.need_mib * columns / scale))
    need = "".join(fill * length for fill, length in zip(_FILLS, lengths, strict=False))
    total = max(1, round(report.total_mib * columns / scale)) if report.total_mib else 0
    free = min(total, round(report.free_mib * columns / scale))
    room = "─" * (total - free) + "━" * free
    return [
        f"  {paint('needs', 'dim')} {need.ljust(columns)} {mib(report.need_mib)}",
        f"  {paint('free ', 'dim')} {room.ljust(columns)} {mib(report.free_mib)} of {mib(report.total_mib)}",
    ]


def shares(parts: list[int], length: int) -> list[int]:
    """``length`` cells divided among the parts by size, each part that is there with at least one.

    The largest part gives what rounding takes too much; the sum is ``length`` unless there are more parts.
    """
    total = sum(parts) or 1
    cells = [max(1, round(part * length / total)) if part else 0 for part in parts]
    while sum(cells) > max(length, sum(1 for part in parts if part)):
        cells[cells.index(max(cells))] -= 1
    if cells and sum(cells) < length:
        cells[cells.index(max(cells))] += length - sum(cells)
    return cells


def _command(report: FitReport) -> list[str]:
    """The command that makes the suggested change, where it is one of settings or unloading."""
    change, name = report.suggestion, safe_text(report.model)
    if change is None or change.change == "memory":
        return []
    if change.unload:
        return [f"  relaydesk model unload {safe_text(other)}" for other in change.unload]
    options = f"--ctx {change.ctx} --slots {change.slots} --kv-k {change.kv_k} --kv-v {change.kv_v}"
    return [f"  relaydesk model set {name} {options}"]
