"""``relaydesk model list``."""

from __future__ import annotations

from pathlib import Path

import click

from relaydesk.core.errors import PeerError
from relaydesk.core.view.sections import MemoryView, ModelsView, ModelView, Section
from relaydesk.surfaces.cli.attach import Node, attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.output import ago, mark, mib, paint, print_json, say, table
from relaydesk.surfaces.cli.status import STATE_TONE
from relaydesk.surfaces.control.routes import VIEWS


@click.command("list")
@json_option
@attach_option
def listing(as_json: bool, attach: Path | None) -> None:
    """All registered models, and the memory they compete for."""
    found = models_view(find_node(attach))
    if as_json:
        print_json(found)
        return
    if not found.models:
        say("No model yet. Get one: `relaydesk model pull smollm2`")
    else:
        head = ("MODEL", "STATE", "NEED", "CONTEXT", "SLOTS", "QUANT", "KEPT", "SOURCE")
        for line in table(head, [_row(row) for row in found.models], indent=""):
            say(line)
    for row in found.models:
        if row.fault is not None:
            say(f"{row.name}: {row.fault.message}" + (f". Next: {row.fault.hint}" if row.fault.hint else ""))
        elif row.fit_reason and not row.fits:
            say(f"{row.name}: {row.fit_reason}")
    say(_memory(found.memory))


def models_view(node: Node) -> ModelsView:
    """The section ``models``. Raises the fault of one that could not be built."""
    section = read(node.get(f"{VIEWS}/models"), Section[ModelsView])
    if section.value is None:
        reason = section.fault.message if section.fault else "it is still starting"
        raise PeerError("internal_error", f"the node cannot list its models: {reason}", "try again")
    return section.value


def _row(row: ModelView) -> tuple[str, ...]:
    tone = STATE_TONE.get(row.state, "plain")
    state = row.state if row.progress is None else f"{row.state} {row.progress:.0%}"
    name = row.name + (f" ({', '.join(row.aliases)})" if row.aliases else "")
    need = mib(row.need_mib) if row.need_mib else "–"
    return (
        name,
        f"{mark(tone)} {paint(state, tone)}",
        need if row.measured or not row.need_mib else f"~{need}",
        str(row.context_length or "–"),
        str(row.slots or "–"),
        row.quantization or "–",
        _kept(row.keep_alive_s),
        row.source or row.kind,
    )


def _kept(seconds: int) -> str:
    return "for ever" if seconds < 0 else "not" if seconds == 0 else ago(seconds)


def _memory(memory: MemoryView) -> str:
    named = {"gpu": "GPU memory", "ram": "RAM", "setting": "memory (RELAY_HOST_MEMORY_MB)"}
    what = named.get(memory.source, "memory")
    return paint(f"{what}: {mib(memory.free_mib)} free of {mib(memory.total_mib)}; ~ is an estimate", "dim")
