"""``relaydesk model list``."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import click

from relaydesk.core.errors import PeerError
from relaydesk.core.relay.price.rate import MICRO
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import JobsView, MemoryView, ModelsView, ModelView, Section
from relaydesk.surfaces.cli.attach import Node, attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.output import ago, home, mark, mib, paint, print_json, say, table, wrap
from relaydesk.surfaces.cli.status import STATE_TONE, JobRow, job_lines, reason, unoffered_line
from relaydesk.surfaces.control.routes import VIEWS


@click.command("list")
@json_option
@attach_option
def listing(as_json: bool, attach: Path | None) -> None:
    """All registered models, and the memory they compete for."""
    node = find_node(attach)
    found = models_view(node)
    if as_json:
        print_json(found)
        return
    scale = max((row.need_mib for row in found.models), default=0)
    if not found.models:
        say("No model yet. Get one: `relaydesk model pull smollm2`")
    else:
        # What the network pays concerns only who offers something.
        offers = any(row.offer for row in found.models)
        head = ["MODEL", "STATE", "NEED", "CONTEXT", "SLOTS", "QUANT", "KEPT"]
        head += ["OFFER, USD", "SOURCE"] if offers else ["SOURCE"]
        rows = [_row(row, scale, offers=offers) for row in found.models]
        source = len(head) - 1
        for line in table(head, rows, indent="", shrink=(source, 0), left=(source,)):
            say(line)
    for row in found.models:
        if row.fault is not None:
            lines = wrap(reason(row.name, row.fault.message, row.fault.hint, row.kind), "  ", "")
        elif row.fit_reason and not row.fits:
            lines = wrap(reason(row.name, row.fit_reason, "", row.kind), "  ", "")
        elif said := unoffered_line(row):
            lines = wrap(said, "  ", "")
        else:
            continue
        for line in lines:
            say(line)
    for line in job_lines(running_jobs(node)):
        say(line)
    say(_memory(found.memory, scale))


def model_named(node: Node, name: str) -> ModelView | None:
    """The model of this name or alias, None where there is none."""
    rows = models_view(node).models
    return next((row for row in rows if name in (row.name, *row.aliases)), None)


def running_jobs(node: Node) -> list[JobRow]:
    """Pulls and loads under way, newest first."""
    section = read(node.get(f"{VIEWS}/jobs"), Section[JobsView])
    jobs = section.value.jobs if section.value is not None else ()
    return [
        JobRow(job.kind, safe_text(job.subject), job.done, job.total, job.rate_per_s, job.note)
        for job in jobs
        if job.state == "running"
    ]


def models_view(node: Node) -> ModelsView:
    """The section ``models``. Raises the fault of one that could not be built."""
    section = read(node.get(f"{VIEWS}/models"), Section[ModelsView])
    if section.value is None:
        reason = section.fault.message if section.fault else "it is still starting"
        raise PeerError("internal_error", f"the node cannot list its models: {reason}", "try again")
    return section.value


def _row(row: ModelView, scale: int, *, offers: bool) -> tuple[str, ...]:
    tone = STATE_TONE.get(row.state, "plain")
    state = row.state if row.progress is None else f"{row.state} {row.progress:.0%}"
    name = row.name + (f" ({', '.join(row.aliases)})" if row.aliases else "")
    need = mib(row.need_mib, scale) if row.need_mib else "–"
    return (
        name,
        f"{mark(tone)} {paint(state, tone)}",
        need if row.measured or not row.need_mib else f"~{need}",
        str(row.context_length or "–"),
        str(row.slots or "–"),
        row.quantization or "–",
        _kept(row.keep_alive_s),
        *((_offer(row),) if offers else ()),
        home(row.source) or row.kind,
    )


def _offer(row: ModelView) -> str:
    """What strangers pay for 1M tokens read and written, where the network may use a model."""
    if not row.offer:
        return "no"
    price = f"{usd(row.input_rate)}/{usd(row.output_rate)}" if row.input_rate or row.output_rate else "free"
    return f"{price} {paint('not now', 'warn')}" if row.unoffered else price


def usd(rate: int) -> str:
    """A rate in microUSDC per 1M tokens as USD, as people type it: ``0.07``."""
    return format((Decimal(rate) / MICRO).normalize(), "f")


def _kept(seconds: int) -> str:
    return "for ever" if seconds < 0 else "not" if seconds == 0 else ago(seconds)


def _memory(memory: MemoryView, scale: int) -> str:
    named = {"gpu": "GPU memory", "ram": "RAM", "setting": "memory (RELAY_HOST_MEMORY_MB)"}
    what = named.get(memory.source, "memory")
    # In the unit of the needs above: what is compared is said in one unit.
    free, total = (
        (mib(memory.free_mib, scale), mib(memory.total_mib, scale))
        if not scale or scale >= 10 * 1024
        else (f"{memory.free_mib} MiB", f"{memory.total_mib} MiB")
    )
    return paint(f"{what}: {free} free of {total}; ~ is an estimate", "dim")
