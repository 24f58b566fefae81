"""``relaydesk status``: the control plane's own document, as it is or for people."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from relaydesk.core.text import SafeText
from relaydesk.surfaces.cli.attach import attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.output import Tone, ago, mark, mib, paint, print_json, say, table


class ModelRow(msgspec.Struct, frozen=True):
    """What the table shows of a model in ``/status``."""

    name: SafeText = SafeText("")
    state: str = ""
    fits: bool = False
    fit_reason: SafeText = SafeText("")
    placement: str = ""
    context_length: int = 0
    in_flight: int = 0
    queued: int = 0
    progress: float | None = None


class WorkerRow(msgspec.Struct, frozen=True):
    """What the table shows of an engine in ``/status``."""

    model: SafeText = SafeText("")
    pid: int = 0
    url: SafeText = SafeText("")
    memory_mb: int = 0


class AlertRow(msgspec.Struct, frozen=True):
    """A standing alert in ``/status``."""

    severity: str = "warning"
    message: SafeText = SafeText("")
    hint: SafeText = SafeText("")


class StatusDocument(msgspec.Struct, frozen=True):
    """The fields of ``/status`` that people are shown; others may come with it."""

    node: SafeText = SafeText("")
    operator: SafeText = SafeText("")
    version: SafeText = SafeText("")
    phase: SafeText = SafeText("ready")
    listening: tuple[SafeText, ...] = ()
    fingerprint: SafeText = SafeText("")
    ca_path: SafeText = SafeText("")
    uptime_s: float = 0.0
    models: tuple[ModelRow, ...] = ()
    workers: tuple[WorkerRow, ...] = ()
    alerts: tuple[AlertRow, ...] = ()


STATE_TONE: dict[str, Tone] = {"warm": "good", "loading": "warn", "cold": "dim", "unavailable": "bad"}
_PHASE_TONE: dict[str, Tone] = {"ready": "good", "starting": "warn", "draining": "warn"}
_SEVERITY_TONE: dict[str, Tone] = {"info": "dim", "warning": "warn", "error": "bad"}


@click.command()
@json_option
@attach_option
def status(as_json: bool, attach: Path | None) -> None:
    """What the node is and does: where it listens, its fingerprint, its models, engines and alerts."""
    body = find_node(attach).get("/status")
    if as_json:
        print_json(body.strip() if b"\n" not in body.strip() else msgspec.json.format(body, indent=-1))
        return
    document = read(body, StatusDocument)
    for line in _lines(document):
        say(line)


def _lines(found: StatusDocument) -> list[str]:
    name = paint(found.node or "this node", "bold")
    version = f" · relaydesk {found.version}" if found.version else ""
    tone = _PHASE_TONE.get(found.phase, "bad")
    lines = [f"{mark(tone)} {name} is {found.phase} · up {ago(found.uptime_s)}{version}"]
    facts = [("listening", url) for url in found.listening or (SafeText("nowhere yet"),)]
    facts += [("fingerprint", found.fingerprint), ("CA file", found.ca_path), ("operator", found.operator)]
    lines += [f"  {paint(label.ljust(12), 'dim')}{value}" for label, value in facts if value]
    lines += ["", *_models(found.models)]
    if found.workers:
        rows = [
            (row.model, str(row.pid or "–"), mib(row.memory_mb) if row.memory_mb else "–", row.url)
            for row in found.workers
        ]
        lines += ["", *table(("ENGINE OF", "PID", "MEMORY", "PRIVATE ADDRESS"), rows)]
    for alert in found.alerts:
        tone = _SEVERITY_TONE.get(alert.severity, "warn")
        lines += ["", f"{mark(tone)} {paint(alert.severity, tone)}: {alert.message}"]
        if alert.hint:
            lines.append(f"  next: {alert.hint}")
    return lines


def _models(models: tuple[ModelRow, ...]) -> list[str]:
    if not models:
        return ["  No model yet. Get one: `relaydesk model pull smollm2`"]
    rows = []
    for row in models:
        tone = STATE_TONE.get(row.state, "plain")
        state = row.state if row.progress is None else f"{row.state} {row.progress:.0%}"
        counts = ((row.in_flight, "running"), (row.queued, "waiting"))
        busy = ", ".join(f"{count} {what}" for count, what in counts if count) or "–"
        where = row.placement or ("–" if row.fits else "does not fit")
        rows.append((row.name, f"{mark(tone)} {paint(state, tone)}", str(row.context_length), where, busy))
    lines = table(("MODEL", "STATE", "CONTEXT", "WHERE", "REQUESTS"), rows)
    reasons = [row for row in models if row.fit_reason and not row.fits]
    return lines + [f"  {row.name}: {row.fit_reason}" for row in reasons]
