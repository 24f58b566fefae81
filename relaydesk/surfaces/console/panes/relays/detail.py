"""One node: how it does as a relay and why it stands where it does, from what was seen of it."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import Final

from relaydesk.core.view.amounts import millis, plural
from relaydesk.core.view.network import EvidenceView, RelayView
from relaydesk.surfaces.console.panes.keys.present import age
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph, path_fact, sentence
from relaydesk.surfaces.console.panes.refs import short_ref
from relaydesk.surfaces.console.panes.relays import present
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import clock_time
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.chart import Series, line_chart
from relaydesk.surfaces.console.widgets.spans import Line, Span, line_width

_ROOM: Final = 11
_HEIGHT: Final = 5
# Cells of the amounts at a chart's left.
_AMOUNTS: Final = 9
_STEP_MS: Final = 20
_STRETCH: Final = (8, 4, 2, 1)


def lines(relay: RelayView, now_ms: int, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """Everything about a node that is not this one."""
    made: list[Line] = [*_head(relay, now_ms, width), NOTHING]
    made += fact("node", relay.ref, width, "strong", room=_ROOM)
    for label, text, tone in _counts(relay, now_ms):
        made += fact(label, text, width, tone, room=_ROOM)
    if relay.standing == "eligible":
        made += [NOTHING, *_evidence(relay, width)] if relay.evidence else []
        made += [NOTHING, *latency(relay, width, ascii=ascii), NOTHING]
    for label, text in _identity(relay):
        made += fact(label, text, width, room=_ROOM)
    made += path_fact("address", relay.base_url, width, room=_ROOM)
    made += fact("owner", relay.owner, width, room=_ROOM)
    command = f"relaydesk relays probe {relay.ref}"
    if relay.standing != "eligible":
        command = f"relaydesk operators trust {relay.owner}"
    return (*made, NOTHING, *fact("shell", command, width, "dim", room=_ROOM))


def _head(relay: RelayView, now_ms: int, width: int) -> tuple[Line, ...]:
    found = present.state(relay)
    left = remaining(relay, now_ms)
    made: list[Line] = [(Span(f"{found.text}{left}", found.tone),)]
    if relay.standing == "eligible":
        made += paragraph(sentence(relay.explanation), width, indent=2)
    if relay.why:
        tone = "warn" if relay.standing == "eligible" else ""
        made += paragraph(sentence(relay.why[:1].upper() + relay.why[1:]), width, tone, indent=2)
    if present.few(relay):
        many = relay.eligible_relays
        said = "Reached through one relay only" if many else "No relay reaches it: nothing can be asked of it"
        made += marked("warn" if many else "error", f"{said}.", width)
    return tuple(made)


def remaining(relay: RelayView, now_ms: int) -> str:
    """How long a demotion lasts still, counting down to the second."""
    if relay.standing != "eligible" or relay.tier != "demoted":
        return ""
    minutes, seconds = divmod(max(0, relay.demoted_until_ms - now_ms) // 1000, 60)
    until = clock_time(relay.demoted_until_ms)
    return f", {minutes}:{seconds:02} left, until {until}" if minutes or seconds else ", about to end"


def _counts(relay: RelayView, now_ms: int) -> tuple[tuple[str, str, str], ...]:
    if relay.standing != "eligible":
        return ()
    limit = relay.fault_limit
    good, probed = age(relay.last_ok_at_ms, now_ms), age(relay.probed_at_ms, now_ms)
    return (
        ("draw", f"{present.share(relay.share)} of requests go through it", ""),
        ("failures", f"{relay.faults}/{limit} in a row", "warn" if relay.faults else ""),
        ("stale", f"{relay.stale}/{limit} details in a row" if relay.stale else "", "warn"),
        ("no answer", plural(relay.unreachable, "time") if relay.unreachable else "", ""),
        ("as target", f"reached through {plural(relay.eligible_relays, 'relay')}", ""),
        ("last good", _ago(good, relay.last_ok_at_ms), ""),
        ("probed", _ago(probed, relay.probed_at_ms), ""),
    )


def _identity(relay: RelayView) -> tuple[tuple[str, str], ...]:
    wire = relay.proto_version and f"protocol {relay.proto_version}"
    software = f"runs {relay.version}" if relay.version else ""
    speaks = ", ".join(text for text in (wire, software) if text)
    return (("operator", relay.name), ("speaks", speaks), ("models", ", ".join(relay.models)))


def _ago(said: str, at_ms: int) -> str:
    if not at_ms:
        return "never yet"
    return f"{said}{'' if said == 'just now' else ' ago'}, at {clock_time(at_ms)}"


def latency(relay: RelayView, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """Its last round trips as a chart, the newest at the right."""
    title = Span("Round trips", "strong")
    if not relay.history:
        return ((title,), *marked("dim", "None was measured yet.", width))
    low, high = min(relay.history), max(relay.history)
    mean = f"  {millis(relay.rtt_ms)} now" if relay.rtt_ms is not None else "  none fresh"
    span = f", {low} to {high} ms, last {len(relay.history)}"
    if cells(title.text + mean + span) > width:
        span = f", {low} to {high} ms"
    if cells(title.text + mean + span) > width:
        span = ""
    return ((title, Span(mean), Span(span, "dim")), *_chart(relay.history, width, ascii=ascii))


# A chart is most of a card's work, and only a probe changes it.
@lru_cache(maxsize=8)
def _chart(history: tuple[int, ...], width: int, *, ascii: bool) -> tuple[Line, ...]:
    room = (width - _AMOUNTS) * (1 if ascii else 2)
    times = next(times for times in _STRETCH if times == 1 or times * len(history) <= room)
    samples = tuple(float(value) for value in history for _ in range(times))
    # The round tops of charts would leave half of this one blank.
    peak = max(_STEP_MS, -(-max(history) // _STEP_MS) * _STEP_MS)
    return line_chart(
        (Series(samples),),
        width,
        _HEIGHT,
        peak=peak,
        filled=True,
        say=lambda value: f"{value:.0f} ms",
        ascii=ascii,
    )


def _evidence(relay: RelayView, width: int) -> tuple[Line, ...]:
    made: list[Line] = [(Span("Evidence", "strong"), Span("  newest first", "dim"))]
    # What is one rule's comes in a row, and its sentence is said once.
    for rule, group in groupby(reversed(relay.evidence), key=lambda seen: seen.rule):
        for seen in group:
            made += _seen(seen, width)
        made += paragraph(sentence(rule[:1].upper() + rule[1:]), width, "dim", indent=2)
    return tuple(made)


def _seen(seen: EvidenceView, width: int) -> tuple[Line, ...]:
    marker = f"{MARKS['ok']} marked" if seen.marker else f"{MARKS['error']} unmarked"
    head: Line = (
        Span(f"{clock_time(seen.at_ms)}  ", "dim"),
        Span(f"{seen.status} {seen.code}".rstrip() if seen.status else "no answer", "strong"),
        *((Span(f"  {marker}", "ok" if seen.marker else "error"),) if seen.status else ()),
    )
    if line_width(head) > width:
        said = f"{clock_time(seen.at_ms)}  {seen.status} {seen.code}  {marker}"
        return paragraph(said, width, "strong")
    room = width - line_width(head) - 6
    ref = seen.target if cells(seen.target) <= room else short_ref(seen.target)
    return ((*head, Span(f"  for {ref}", "dim")) if cells(ref) <= room else head,)
