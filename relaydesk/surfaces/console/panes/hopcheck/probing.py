"""The second step: every probe at every layer, and how far the check is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from relaydesk.core.view.amounts import duration, plural
from relaydesk.core.view.hopcheck import FindingView, LayerView, ProbeState, ProbeView
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph, sentence
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.widgets.cells import wrap
from relaydesk.surfaces.console.widgets.columns import GAP, MARGIN, Column
from relaydesk.surfaces.console.widgets.gauge import gauge
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

Since = Mapping[tuple[str, str], int]


class Look(NamedTuple):
    """A state's symbol, tone and word."""

    mark: str
    tone: str
    word: str


LOOKS: Final[dict[ProbeState, Look]] = {
    "passed": Look(MARKS["ok"], "ok", "passed"),
    "failed": Look(MARKS["error"], "error", "failed"),
    "running": Look(MARKS["info"], "info", "running"),
    "waiting": Look(MARKS["dim"], "dim", "waiting"),
    "not_tested": Look("–", "dim", "untested"),
}
# Cells of a layer's column: with the state's word, and with its symbol alone.
_WORDS: Final = 10
_MARKS: Final = 6
# The least that a probe's name is worth having.
_NAME: Final = 24
_GAUGE: Final = 30


def worded(layers: int, width: int) -> bool:
    """Whether there is room for the states' words."""
    return width - 2 * MARGIN - layers * (_WORDS + GAP) >= _NAME


def columns(layers: Sequence[LayerView], width: int) -> tuple[Column, ...]:
    """A column for the probes' names and one for each layer, from the inside outwards."""
    each = _WORDS if worded(len(layers), width) else _MARKS
    return (
        Column("probe", "PROBE", width=_NAME, min_width=16, fill=1),
        *(Column(f"at-{at}", layer.name.upper(), width=each, priority=1) for at, layer in enumerate(layers)),
    )


def rows(
    layers: Sequence[LayerView], probes: Sequence[ProbeView], since: Since, now_ms: int, width: int
) -> tuple[Row, ...]:
    """One row for each probe, in the order of the layer that has most of them."""
    words = worded(len(layers), width)
    found = {(each.layer, each.id): each for each in probes}
    return tuple(
        Row(
            probe,
            (
                Cell(title),
                *(_cell(found.get((layer.name, probe)), since, now_ms, words=words) for layer in layers),
            ),
        )
        for probe, title in order(layers, probes)
    )


def order(layers: Sequence[LayerView], probes: Sequence[ProbeView]) -> tuple[tuple[str, str], ...]:
    """Each probe's id and title once."""
    by_layer = [[each for each in probes if each.layer == layer.name] for layer in layers]
    by_layer.sort(key=len, reverse=True)
    return tuple({each.id: each.title for group in by_layer for each in group}.items())


def _cell(probe: ProbeView | None, since: Since, now_ms: int, *, words: bool) -> Cell:
    if probe is None:
        return BLANK
    look = LOOKS[probe.state]
    if probe.state == "running":
        return Cell(f"{look.mark} {elapsed(probe, since, now_ms)}", look.tone)
    return Cell(f"{look.mark} {look.word}" if words else look.mark, look.tone)


def elapsed(probe: ProbeView, since: Since, now_ms: int) -> str:
    """How long a probe has been running, to the second."""
    started = since.get((probe.layer, probe.id), now_ms)
    return f"{max(0, now_ms - started) // 1000} s"


def legend() -> tuple[Line, ...]:
    """What the symbols stand for, where they stand alone."""
    spans: list[Span] = []
    for look in LOOKS.values():
        spans += [Span("  ")] if spans else []
        spans += [Span(look.mark, look.tone), Span(f" {look.word}", "dim")]
    return (tuple(spans),)


def progress(
    probes: Sequence[ProbeView],
    findings: Sequence[FindingView],
    started_ms: int,
    now_ms: int,
    width: int,
    *,
    ascii: bool = False,
) -> tuple[Line, ...]:
    """How far it is, for how long it runs, and what was found so far."""
    if not probes:
        return marked("info", "The node is asked to begin.", width)
    ended = sum(each.state in ("passed", "failed", "not_tested") for each in probes)
    took = duration(max(0, now_ms - started_ms) / 1000)
    said = f"  {ended} of {plural(len(probes), 'probe')} ended, {took}"
    bar = gauge(ended / len(probes), min(_GAUGE, max(8, width - len(said))), ascii=ascii)
    lines: list[Line] = [(*bar, Span(said))]
    lines += so_far(findings, width)
    return tuple(lines)


def so_far(findings: Sequence[FindingView], width: int) -> tuple[Line, ...]:
    """What was found, in one line; more may follow while the check runs."""
    if not findings:
        return ((Span("Nothing was found so far.", "dim"),),)
    more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    tone = "error" if findings[0].severity == "error" else "warn"
    title = findings[0].title
    return marked(tone, f"{title[:1].upper()}{title[1:]}{more}.", width)[:2]


def detail(
    probe_id: str,
    layers: Sequence[LayerView],
    probes: Sequence[ProbeView],
    since: Since,
    now_ms: int,
    width: int,
) -> tuple[Line, ...]:
    """One probe at every layer: its state, and what it saw or why it was not tested."""
    found = [each for each in probes if each.id == probe_id]
    if not found:
        return ()
    title = found[0].title
    made: list[Line] = [(Span(line, "strong"),) for line in wrap(title[:1].upper() + title[1:], width)]
    for layer in layers:
        probe = next((each for each in found if each.layer == layer.name), None)
        if probe is None:
            continue
        look = LOOKS[probe.state]
        took = elapsed(probe, since, now_ms) if probe.state == "running" else _took(probe)
        word = "not tested" if probe.state == "not_tested" else look.word
        took = f"  {took}" if took else ""
        head = (Span(f"{look.mark} {word}", look.tone), Span(f"  {layer.name}", "strong"), Span(took, "dim"))
        made += [NOTHING, head]
        made += paragraph(sentence(probe.evidence), width, indent=2)
    return tuple(made)


def _took(probe: ProbeView) -> str:
    if not probe.took_ms:
        return ""
    return f"{probe.took_ms} ms" if probe.took_ms < 10_000 else duration(probe.took_ms / 1000)


def counted(probes: Sequence[ProbeView]) -> str:
    """How the probes ended, in a few words."""
    states: tuple[tuple[ProbeState, str], ...] = (
        ("passed", "passed"),
        ("failed", "failed"),
        ("not_tested", "not tested"),
    )
    counts = [(sum(each.state == state for each in probes), word) for state, word in states]
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def layer_facts(layer: LayerView, width: int, room: int) -> tuple[Line, ...]:
    """Where a layer is, and what answers there."""
    return fact(layer.name, f"{layer.url}{f', {layer.product}' if layer.product else ''}", width, room=room)
