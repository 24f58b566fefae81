"""``relaydesk request``: one request's life."""

from __future__ import annotations

from pathlib import Path

import click

from relaydesk.core.commands import ShowRequest
from relaydesk.core.view.sections import RequestView
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import Tone, mark, millis, paint, print_json, say

_TONE: dict[str, Tone] = {"done": "good", "failed": "bad", "cancelled": "warn"}
_LABEL = 14


@click.group()
def request() -> None:
    """Requests by their id, the x-request-id of the answer."""


@request.command()
@click.argument("id")
@json_option
@attach_option
def show(id: str, as_json: bool, attach: Path | None) -> None:
    """One request's life: queue, load, first token, rate, outcome."""
    value = find_node(attach).call(ShowRequest(id=id)).value
    if as_json:
        print_json(value)
        return
    for line in _lines(answer(value, RequestView)):
        say(line)


def _lines(found: RequestView) -> list[str]:
    tone = _TONE.get(found.state, "plain")
    outcome = f"{found.state}, HTTP {found.status}" if found.status else found.state
    stream = "streamed" if found.stream else "not streamed"
    choices = f", {found.choices} choices" if found.choices > 1 else ""
    prompt = f"{found.prompt_tokens} tokens" + (
        f", {found.cached_tokens} cached" if found.cached_tokens else ""
    )
    rate = f"{found.tokens_per_s:.1f} tokens/s" if found.tokens_per_s else "–"
    rows = [
        ("asked", f"{found.model} by key {found.key}, {found.route}, {stream}{choices}"),
        ("in queue", millis(found.queue_ms)),
        ("model load", millis(found.load_ms)),
        ("first token", millis(found.first_token_ms)),
        ("in all", millis(found.total_ms)),
        ("prompt", prompt),
        ("answer", f"{found.completion_tokens} tokens"),
        ("rate", rate),
    ]
    if found.finish_reasons:
        rows.append(("finished by", ", ".join(found.finish_reasons)))
    if found.fault is not None:
        rows.append(("what failed", f"{found.fault.message} ({found.fault.code})"))
        if found.fault.hint:
            rows.append(("next", found.fault.hint))
    head = f"{mark(tone)} {paint(found.id, 'bold')} {paint(outcome, tone)}"
    return [head, *(f"  {paint(label.ljust(_LABEL), 'dim')}{text}" for label, text in rows)]
