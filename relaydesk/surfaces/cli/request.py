"""``relaydesk request``: requests, and where one's time went."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click

from relaydesk.core.commands import ShowRequest
from relaydesk.core.errors import LocalError, PeerError
from relaydesk.core.view.sections import RequestsView, RequestView, Section
from relaydesk.core.view.timing import Part, Timing, parts
from relaydesk.surfaces.cli.attach import Node, answer, attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.names import Named, named_by, names_of
from relaydesk.surfaces.cli.output import (
    Tone,
    ago,
    columns,
    mark,
    millis,
    paint,
    print_json,
    say,
    stacked,
    table,
    tell,
    wrap,
)
from relaydesk.surfaces.cli.verbs import verb
from relaydesk.surfaces.control.routes import VIEWS

_TONE: Final[dict[str, Tone]] = {"done": "good", "failed": "bad", "cancelled": "warn"}
# Told apart by shape, since colour alone tells nobody who cannot see it.
_FILLS: Final = {"waited": "░", "load": "▒", "prompt": "▓", "answer": "█"}
_WIDEST: Final = 72


@click.group(cls=LazyGroup, verbs=verb("request").below)
def request() -> None:
    """Requests by their id, the x-request-id of the answer."""


@click.command("list")
@json_option
@attach_option
def listing(as_json: bool, attach: Path | None) -> None:
    """The newest requests, those under way among them, newest first."""
    found = _newest(find_node(attach))
    if as_json:
        print_json({"requests": found})
        return
    if not found:
        tell("No request yet. `relaydesk token --api` shows the key that a client needs.")
        return
    head = ("REQUEST", "MODEL", "STATE", "HTTP", "TOKENS", "TIME", "OUTCOME")
    for line in table(head, [_row(row) for row in found], indent="", shrink=(1, 6)):
        say(line)


@click.command()
@click.argument("id", required=False)
@click.option("--last", is_flag=True, help="The newest request instead of one by its id.")
@json_option
@attach_option
def show(id: str | None, last: bool, as_json: bool, attach: Path | None) -> None:
    """One request's life: what it asked for, where its time went, what came of it.

    ID is the x-request-id of the answer; `relaydesk request list` shows the newest.
    """
    if (id is None) != last:
        raise click.UsageError("Give the ID of a request, or --last.")
    node = find_node(attach)
    value = node.call(ShowRequest(id=id or _last(node))).value
    found = answer(value, RequestView)
    timing = parts(found, _now_ms())
    if as_json:
        print_json({**value, "prefill_ms": _closed(timing, 2), "decode_ms": _closed(timing, 3)})
        return
    named = names_of(node) if found.targets else named_by(())
    for line in _lines(found, timing, named):
        say(line)


def _newest(node: Node) -> list[RequestView]:
    """Requests under way and ended ones, newest first."""
    section = read(node.get(f"{VIEWS}/requests"), Section[RequestsView])
    if section.value is None:
        reason = section.fault.message if section.fault else "it is still starting"
        raise PeerError("internal_error", f"the node cannot list its requests ({reason})", "try again")
    found = [*section.value.in_flight, *section.value.recent]
    return sorted(found, key=lambda view: view.started_at_ms, reverse=True)


def _last(node: Node) -> str:
    found = _newest(node)
    if not found:
        raise LocalError(
            "request_not_found", "there was no request since the node started", "send one, then try again"
        )
    return found[0].id


def _now_ms() -> int:
    return round(time.time() * 1000)


def _closed(timing: Timing, at: int) -> int | None:
    """The time of a part that is over."""
    return None if timing.running and timing.parts[at].open else timing.parts[at].ms


def _row(found: RequestView) -> tuple[str, ...]:
    tone = _TONE.get(found.state, "plain")
    state = found.state if found.state in _TONE else paint(found.state, "warn")
    outcome = found.fault.code if found.fault is not None else ", ".join(found.finish_reasons)
    return (
        found.id,
        found.model,
        f"{mark(tone if tone != 'plain' else 'warn')} {state}",
        str(found.status or "–"),
        f"{found.prompt_tokens}+{found.completion_tokens}",
        millis(parts(found, _now_ms()).total_ms),
        outcome or "–",
    )


def _lines(found: RequestView, timing: Timing, named: Named) -> list[str]:
    tone = _TONE.get(found.state, "warn")
    outcome = f"{found.state}, HTTP {found.status}" if found.status else found.state
    stream = "streamed" if found.stream else "not streamed"
    choices = f", {found.choices} choices" if found.choices > 1 else ""
    since = f"{ago((_now_ms() - found.started_at_ms) / 1000)} ago"
    lines = [f"{mark(tone)} {paint(found.id, 'bold')} {paint(outcome, tone)}"]
    lines += wrap(f"{found.model} by key {found.key}, {found.route}, {stream}{choices}, {since}", "  ")
    lines += ["", *_times(timing), ""]
    rows = []
    if found.finish_reasons:
        rows.append(("finished by", ", ".join(found.finish_reasons)))
    if found.targets:
        relays = f", carried sealed by {', '.join(map(named, found.relays))}" if found.relays else ""
        rows.append(("network", f"read by {', '.join(map(named, found.targets))}{relays}"))
        rows.append(("paid", f"{found.paid:,} microunits"))
    if found.fault is not None:
        rows.append(("failed with", f"{found.fault.message} ({found.fault.code})"))
        if found.fault.hint:
            rows.append(("next", found.fault.hint))
    for label, text in rows:
        lines += wrap(text, " " * 15, f"  {paint(label.ljust(13), 'dim')}")
    return lines if rows else lines[:-1]


def _times(timing: Timing) -> list[str]:
    """The bar, then each part with its fill and what it did, then their sum."""
    width = min(_WIDEST, columns() - 4)
    bar = stacked([(_FILLS[part.name], part.ms or 0) for part in timing.parts], width)
    rows = [_part(part, timing) for part in timing.parts]
    total = millis(timing.total_ms) + (" so far" if timing.running else "")
    most = max(len(time_) for _, time_, _ in rows)
    lines = [f"  {bar}", ""] if bar else []
    for name, time_, text in rows:
        line = f"  {_FILLS[name]} {name.ljust(8)}{time_.rjust(most)}"
        if name == timing.largest:
            line = paint(line, "bold")
            text = f"{text}  {paint('◀ most of it', 'warn')}".lstrip()
        lines.append(f"{line}  {text}".rstrip())
    return [*lines, f"  {paint('=', 'dim')} {'total'.ljust(8)}{total.rjust(most)}"]


def _part(part: Part, timing: Timing) -> tuple[Any, str, str]:
    texts = []
    if part.name == "load" and part.ms is None and timing.loaded:
        texts.append("it was loaded")
    if part.tokens or (part.name == "answer" and part.ms is not None):
        texts.append(f"{part.tokens} tokens")
    if part.cached:
        texts.append(f"{part.cached} of them cached")
    if part.tokens_per_s:
        texts.append(f"{part.tokens_per_s:.1f} tokens/s")
    if part.open:
        texts.append("under way")
    return part.name, millis(part.ms), ", ".join(texts)
