"""Hops as rows, and one of them as what happened, who was charged, and what followed."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from relaydesk.core.view.amounts import millis
from relaydesk.core.view.network import HopsView, HopView
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph, sentence
from relaydesk.surfaces.console.panes.refs import short_ref
from relaydesk.surfaces.console.panes.relays.present import short_code
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import Notice, clock_time
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

COLUMNS: Final = (
    Column("time", "TIME", width=8, priority=3, descending=True),
    Column("purpose", "FOR", width=9, priority=7),
    Column("relay", "RELAY", width=12, min_width=11),
    Column("target", "TARGET", width=12, min_width=11, priority=4),
    Column("answer", "ANSWER", width=16, min_width=13, fill=2),
    Column("marker", "MARK", width=4, priority=2),
    Column("charged", "CHARGED", width=9, min_width=8, priority=1),
    Column("took", "TOOK", width=7, align="right", priority=6, descending=True),
    Column("verdict", "VERDICT", width=17, priority=5),
    Column("attempt", "TRY", width=3, align="right", priority=8, descending=True),
    Column("rule", "RULE", width=19, priority=9),
    Column("id", "ID", width=20, min_width=12, priority=10),
)
EMPTY: Final = Notice(
    "Nothing was asked through a relay yet.",
    "r probes every node through relays now, as `relaydesk relays probe` does",
)
YES, NO = "✓", "✗"
# What a hop came to, and its tone.
_TONES: Final = {"answered": "ok", "relay": "error", "target": "warn", "unclear": "info", "stands": "dim"}
_VERDICTS: Final = {
    "answered": "target answered",
    "relay": "relay failed",
    "target": "target failed",
    "unclear": "nobody can tell",
    "stands": "stands as it is",
}
_PURPOSES: Final = {
    "probe": "a probe",
    "reserve": "a reservation",
    "inference": "an inference",
    "ledger": "the ledger",
}
_ROOM: Final = 11


def rows(hops: HopsView, *, failures: bool = False) -> tuple[Row, ...]:
    """The newest first; ``failures`` leaves those that brought no answer of their target."""
    return tuple(_row(hop) for hop in hops.hops if not failures or outcome(hop) != "answered")


def find(hops: HopsView, key: str) -> HopView | None:
    """The hop of a row."""
    return next((hop for hop in hops.hops if hop.id == key), None)


def sign(left_out: int, width: int) -> tuple[Line, ...]:
    """That only failures are listed, and what shows the rest again."""
    return marked("warn", f"Only what brought no answer, {left_out} left out: esc shows all.", width)


def outcome(hop: HopView) -> str:
    """What a hop came to: ``answered``, or who failed."""
    if hop.charged in ("relay", "target"):
        return hop.charged
    if hop.attribution == "unknown":
        return "unclear"
    if hop.attribution in ("relay", "target"):
        return hop.attribution
    return "answered" if hop.code or 200 <= hop.status < 300 else "stands"


# A hop changes at most once more, when its retry has shown who was at fault.
@lru_cache(maxsize=512)
def _row(hop: HopView) -> Row:
    found = outcome(hop)
    tone = _TONES[found]
    return Row(
        hop.id,
        (
            Cell(clock_time(hop.at_ms), "dim", hop.at_ms),
            Cell(hop.purpose, "dim"),
            Cell(short_ref(hop.relay)),
            Cell(short_ref(hop.target), "dim"),
            Cell(f"{MARKS[tone]} {_came_short(hop)}", tone, hop.status),
            Cell(YES, "ok") if hop.marker else Cell(NO, "error" if hop.charged == "relay" else "dim"),
            Cell(hop.charged, {"relay": "error", "target": "warn"}.get(hop.charged, "dim")),
            Cell(millis(hop.duration_ms), "", hop.duration_ms),
            Cell(_VERDICTS[found], tone),
            Cell(str(hop.attempt), "" if hop.attempt > 1 else "dim", hop.attempt),
            Cell(hop.rule, "dim"),
            Cell(hop.id, "dim"),
        ),
    )


def came(hop: HopView) -> str:
    """Status and code, or that there was no answer."""
    return f"{hop.status} {hop.code}".rstrip() if hop.status else "no answer"


def _came_short(hop: HopView) -> str:
    return f"{hop.status} {short_code(hop.code)}".rstrip() if hop.status else "no answer"


def detail(hop: HopView, hops: HopsView, width: int) -> tuple[Line, ...]:
    """One hop: its way as a picture, the judgement as sentences, then every fact."""
    tone = _TONES[outcome(hop)]
    made: list[Line] = [way(hop, width), NOTHING, *marked(tone, judgement(hop), width)]
    made += paragraph(_because(hop), width, indent=2)
    made += [*fact("rule", hop.rule, width, "dim", room=_ROOM), NOTHING]
    more = followed(hop, hops)
    for said in more:
        made += paragraph(said, width)
    if more:
        made.append(NOTHING)
    for label, text in _facts(hop):
        made += fact(label, text, width, room=_ROOM)
    return tuple(made)


def way(hop: HopView, width: int) -> Line:
    """From here over the relay to the target, broken where it failed."""
    found = outcome(hop)
    relay, target = short_ref(hop.relay), short_ref(hop.target)
    good, bad, lost, asked = "──▸ ", f"──{NO} ", "┄┄┄ ", "──? "
    first, second = {
        "answered": (good, good),
        "stands": (good, good) if hop.status else (asked, lost),
        "relay": (good if hop.marker else bad, bad if hop.marker else lost),
        "target": (good, bad),
        "unclear": (good, asked),
    }[found]
    tones = {good: "ok", bad: "error", lost: "faint", asked: "info"}
    line = (
        Span("you "),
        Span(first, tones[first]),
        Span(f"{relay} ", "strong"),
        Span(second, tones[second]),
        Span(target, "faint" if second == lost else "strong"),
    )
    return line if sum(cells(span.text) for span in line) <= width else line[:3]


def judgement(hop: HopView) -> str:
    """Who was charged, as a sentence."""
    match hop.charged:
        case "relay":
            return f"Relay {short_ref(hop.relay)} was charged."
        case "target":
            return f"Target {short_ref(hop.target)} was charged: no relay reached it."
        case _ if outcome(hop) == "answered":
            return "The target answered; nobody was charged."
        case _:
            return "Nobody was charged."


def _because(hop: HopView) -> str:
    return sentence(hop.why[:1].upper() + hop.why[1:])


def followed(hop: HopView, hops: HopsView) -> tuple[str, ...]:
    """What was tried before this hop, and what after it."""
    chain = [each for each in hops.hops if _same(each, hop)]
    before = next(
        (each for each in chain if each.attempt == hop.attempt - 1 and each.at_ms <= hop.at_ms), None
    )
    after = [each for each in chain if each.attempt == hop.attempt + 1 and each.at_ms >= hop.at_ms]
    said: list[str] = []
    if before is not None:
        said.append(f"Try {hop.attempt}: before it {short_ref(before.relay)} brought {came(before)}.")
    elif hop.attempt > 1:
        said.append(f"Try {hop.attempt}; those before it are not kept any more.")
    if after:
        # The list is newest first: of those that may be it, the earliest is.
        later = after[-1]
        wait = millis(max(0, later.at_ms - hop.at_ms - hop.duration_ms))
        said.append(f"Then, {wait} later, {short_ref(later.relay)} was tried: {came(later)}.")
    elif hop.retryable and outcome(hop) != "answered":
        said.append("It may be tried again; no retry followed.")
    return tuple(said)


def _same(one: HopView, other: HopView) -> bool:
    return (one.target, one.path, one.purpose) == (other.target, other.path, other.purpose)


def _facts(hop: HopView) -> tuple[tuple[str, str], ...]:
    marker = "yes: the relay itself handled it" if hop.marker else "none"
    again = "another try may help" if hop.retryable else "another try would not help"
    return (
        ("answer", f"{came(hop)} after {millis(hop.duration_ms)}"),
        ("marker", marker),
        ("verdict", f"{_VERDICTS[outcome(hop)]}; {again}"),
        ("at", clock_time(hop.at_ms)),
        ("for", f"{_PURPOSES[hop.purpose]}, try {hop.attempt}"),
        ("asked", hop.path),
        ("relay", hop.relay),
        ("target", hop.target),
        ("id", hop.id),
    )
