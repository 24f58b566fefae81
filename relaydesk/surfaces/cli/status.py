"""``relaydesk status``: the control plane's own document, as it is or for people."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec

from relaydesk.core.pool.offer import until_offered
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import ModelView
from relaydesk.surfaces.cli.attach import attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.output import (
    Tone,
    ago,
    columns,
    home,
    mark,
    mib,
    paint,
    print_json,
    say,
    table,
    width,
    wrap,
)


class ModelRow(msgspec.Struct, frozen=True):
    """What the table shows of a model in ``/status``."""

    name: SafeText = SafeText("")
    state: str = ""
    fits: bool = False
    fit_reason: SafeText = SafeText("")
    kind: str = ""
    placement: str = ""
    context_length: int = 0
    in_flight: int = 0
    queued: int = 0
    progress: float | None = None
    offer: bool = False
    unoffered: SafeText = SafeText("")
    preload: bool = False
    keep_alive_s: int = 0


class WorkerRow(msgspec.Struct, frozen=True):
    """What the table shows of an engine in ``/status``."""

    model: SafeText = SafeText("")
    pid: int = 0
    url: SafeText = SafeText("")
    memory_mb: int = 0


class JobRow(msgspec.Struct, frozen=True):
    """A long command under way in ``/status``."""

    kind: str = ""
    subject: SafeText = SafeText("")
    done: int = 0
    total: int = 0
    rate_per_s: int = 0
    note: SafeText = SafeText("")


class AlertRow(msgspec.Struct, frozen=True):
    """A standing alert in ``/status``."""

    severity: str = "warning"
    message: SafeText = SafeText("")
    hint: SafeText = SafeText("")


class NetworkRow(msgspec.Struct, frozen=True):
    """The node's place in the relay network in ``/status``."""

    on: bool = False
    listening: tuple[SafeText, ...] = ()
    public_url: SafeText = SafeText("")
    problem: SafeText = SafeText("")
    unpublished: SafeText = SafeText("")


class StatusDocument(msgspec.Struct, frozen=True):
    """The fields of ``/status`` that people are shown; others may come with it."""

    node: SafeText = SafeText("")
    operator: SafeText = SafeText("")
    version: SafeText = SafeText("")
    phase: SafeText = SafeText("ready")
    listening: tuple[SafeText, ...] = ()
    fingerprint: SafeText = SafeText("")
    ca_path: SafeText = SafeText("")
    certificate: SafeText = SafeText("")
    uptime_s: float = 0.0
    models: tuple[ModelRow, ...] = ()
    workers: tuple[WorkerRow, ...] = ()
    network: NetworkRow | None = None
    jobs: tuple[JobRow, ...] = ()
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
    facts: list[tuple[str, str]] = [
        ("listening", url) for url in found.listening or (SafeText("nowhere yet"),)
    ]
    facts += [("fingerprint", part) for part in fingerprint_lines(found.fingerprint)]
    facts += [("CA file", home(found.ca_path)), ("operator", found.operator)]
    facts += [("certificate", found.certificate)]
    shown = ""
    for label, value in facts:
        if value:
            lines.append(f"  {paint(('' if label == shown else label).ljust(12), 'dim')}{value}")
            shown = label
    lines += [*_network(found.network), "", *_models(found.models)]
    if found.workers:
        scale = max(row.memory_mb for row in found.workers)
        rows = [
            (row.model, str(row.pid or "–"), mib(row.memory_mb, scale) if row.memory_mb else "–")
            for row in found.workers
        ]
        lines += ["", *table(("ENGINE OF", "PID", "MEMORY"), rows, shrink=(0,))]
    lines += job_lines(found.jobs, "  ")
    for alert in found.alerts:
        tone = _SEVERITY_TONE.get(alert.severity, "warn")
        lines += ["", *wrap(f"{alert.message}", "  ", f"{mark(tone)} {paint(alert.severity, tone)}: ")]
        if alert.hint:
            lines += wrap(f"next: {alert.hint}", "  ")
    return lines


def _network(row: NetworkRow | None) -> list[str]:
    """The relay network: where it listens, as what it is known, and whether a directory lists it."""
    if row is None or not row.on:
        return []
    if row.problem:
        facts = [("network", f"closed: {row.problem}")]
    else:
        facts = [("network", url) for url in row.listening or ("nowhere yet",)]
        facts += [("public URL", row.public_url or "none")]
        facts += [("listed", f"no: {row.unpublished}" if row.unpublished else "yes")]
    lines = []
    for label, text in facts:
        lines += wrap(text, " " * 14, f"  {paint(label.ljust(12), 'dim')}")
    return lines


def fingerprint_lines(text: str) -> list[str]:
    """A fingerprint on lines of sixteen bytes, so that none breaks within one."""
    parts = text.split(":")
    lines = [":".join(parts[at : at + 16]) for at in range(0, len(parts), 16)]
    return [line + ":" for line in lines[:-1]] + lines[-1:]


def job_lines(jobs: Iterable[JobRow], indent: str = "") -> list[str]:
    """Long commands under way, a line each below a heading; nothing where there is none."""
    from relaydesk.core.view.sections import JobView
    from relaydesk.surfaces.cli.follow import progress_line

    lines = []
    for job in jobs:
        view = JobView("", job.kind, job.subject, "running", 0, job.done, job.total, job.rate_per_s, job.note)
        label = f"{indent}{mark('warn')} {job.kind} "
        lines.append(label + progress_line(view, min(100, columns()) - width(label)))
    return ["", f"{indent}{paint('UNDER WAY', 'dim')}", *lines] if lines else []


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
        context = str(row.context_length or "–")
        rows.append((row.name, f"{mark(tone)} {paint(state, tone)}", context, where, busy))
    lines = table(("MODEL", "STATE", "CONTEXT", "WHERE", "REQUESTS"), rows, shrink=(0,))
    for row in models:
        if row.fit_reason and not row.fits:
            lines += wrap(reason(row.name, row.fit_reason, "", row.kind), "    ", "  ")
        elif said := unoffered_line(row):
            lines += wrap(said, "    ", "  ")
    return lines


def unoffered_line(row: ModelRow | ModelView) -> str:
    """Why a model that is to be offered to the network is not, with the next step; else empty."""
    if not (row.offer and row.unoffered):
        return ""
    return until_offered(row.name, row.unoffered, preload=row.preload, keep_alive_s=row.keep_alive_s)


def reason(name: str, why: str, hint: str, kind: str) -> str:
    """Why a model cannot be used, and the next step: the hint, else the report on what it needs."""
    if not hint and kind != "url" and "needs about" in why:
        hint = f"`relaydesk model fit {name}` says what would help"
    text = why if why.startswith((f'"{name}"', f"{name} ")) else f"{name}: {why}"
    return f"{text.rstrip('.')}: {hint}" if hint else text
