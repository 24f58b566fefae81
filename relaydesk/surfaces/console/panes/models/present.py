"""Models as rows, and one of them as a detail."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from relaydesk.config.kinds import show_duration
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.view.amounts import duration, mib, plural, size
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.sections import FaultView, JobsView, ModelsView, ModelView
from relaydesk.surfaces.console.panes.models import fit, jobs, offers
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, fault_lines, marked, path_fact, sentence
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

_NAME: Final = Column("name", "MODEL", width=20, fill=2, min_width=12)
_SIZE: Final = (
    Column("state", "STATE", width=13),
    Column("need", "NEED", width=8, align="right", priority=1, descending=True),
)
_CTX: Final = Column("ctx", "CTX", width=6, align="right", priority=3, descending=True)
_USE: Final = (
    Column("slots", "SLOTS", width=5, align="right", priority=5, descending=True),
    Column("running", "RUN", width=4, align="right", priority=2, descending=True),
    Column("waiting", "WAIT", width=4, align="right", priority=2, descending=True),
    Column("quant", "QUANT", width=7, priority=6),
    Column("kept", "KEPT", width=8, priority=7),
    Column("source", "SOURCE", width=18, fill=1, min_width=12, priority=8),
)
COLUMNS: Final = (_NAME, *_SIZE, _CTX, *_USE)
# Where the network plays a part: names of others are longer, and prices tell more than contexts.
WITH_NETWORK: Final = (
    replace(_NAME, min_width=18),
    *_SIZE,
    replace(_CTX, priority=4),
    *offers.COLUMNS,
    *_USE,
)
TONES: Final = {"warm": "ok", "loading": "info", "cold": "dim", "unavailable": "error"}
FIRST: Final = "smollm2"


def empty(running: JobsView | None, pull_key: str) -> Notice:
    """What to say where no model is registered; while one is fetched, how far that is."""
    under_way = jobs.running(running)
    if under_way:
        return Notice(
            f"The first model is on its way. {jobs.said(under_way[0])}", "it appears here by itself"
        )
    failed = next(iter(running.jobs if running is not None else ()), None)
    if failed is not None and failed.state == "failed" and failed.fault is not None:
        hint = f" {sentence(failed.fault.hint)}" if failed.fault.hint else ""
        return Notice(f"{failed.kind} {failed.subject}: {sentence(failed.fault.message)}{hint}", pull_key)
    return Notice("No model is registered yet.", pull_key)


def networked(models: ModelsView, network: NetworkView | None) -> bool:
    """Whether the network plays a part: it is on, or a model is to be offered to it."""
    return (network is not None and network.on) or any(model.offer for model in models.models)


def rows(models: ModelsView, network: NetworkView | None = None, *, apart: bool = True) -> tuple[Row, ...]:
    """Every model, as the node orders them; below them those of others, ``apart`` under a head."""
    with_network = networked(models, network)
    own = tuple(_row(model, with_network=with_network) for model in models.models)
    return (*own, *offers.rows(network, len(COLUMNS), apart=apart))


def find(models: ModelsView | None, name: str) -> ModelView | None:
    """The model of a row."""
    return next((model for model in models.models if model.name == name), None) if models else None


def _row(model: ModelView, *, with_network: bool) -> Row:
    tone = TONES[model.state]
    return Row(
        model.name,
        (
            Cell(model.name, "strong" if model.state == "warm" else ""),
            Cell(f"{MARKS[tone]} {state_word(model)}", tone, model.state),
            Cell(mib(model.need_mib), "", model.need_mib) if model.need_mib else BLANK,
            Cell(str(model.context_length), "", model.context_length) if model.context_length else BLANK,
            *(offers.own_cells(model) if with_network else ()),
            Cell(str(model.slots), "dim", model.slots),
            _count(model.in_flight, "strong"),
            _count(model.queued, "warn"),
            Cell(model.quantization, "dim"),
            Cell(kept(model.keep_alive_s), "dim", _kept_rank(model.keep_alive_s)),
            Cell(model.source, "dim"),
        ),
    )


def _count(value: int, tone: str) -> Cell:
    return Cell(str(value), tone if value else "dim", value)


def state_word(model: ModelView) -> str:
    """The state, and how far a load is."""
    if model.state == "loading" and model.progress:
        return f"loading {int(model.progress * 100)}%"
    return model.state


def kept(seconds: int) -> str:
    """How long a model stays loaded when idle."""
    if seconds < 0:
        return "always"
    return duration(seconds) if seconds else "–"


def keep_alive(seconds: int) -> str:
    """The same as it is typed: ``15m``, ``-1`` for ever."""
    if seconds < 0:
        return "-1"
    return show_duration(seconds) if seconds else "0"


def removal(model: ModelView) -> str:
    """What removing this model deletes."""
    if model.kind == "url":
        return "the registration; its server is left alone"
    if not model.owned:
        return f"the registration; its file stays where it is: {model.source}"
    held = f" ({size(model.size_bytes)})" if model.size_bytes else ""
    return f"the registration and the file{held} that relaydesk fetched as {model.source or model.name}"


def _kept_rank(seconds: int) -> float:
    return float("inf") if seconds < 0 else float(seconds)


def why(model: ModelView, width: int) -> tuple[Line, ...]:
    """The selected model in a sentence below the list: what it does, or what stands in its way."""
    if model.state == "unavailable":
        reason = model.fault.message if model.fault is not None else model.fit_reason
        named = "" if model.name in reason else f"{model.name}: "
        return marked("error", f"{named}{sentence(reason)} Enter says what would help.", width)
    if model.state == "warm":
        busy = f"{model.in_flight} of {plural(model.slots, 'slot')} in use"
        return (*marked("ok", f"{model.name} is loaded, {busy}.", width), *_not_offered(model, width))
    if model.fit_reason:
        return marked("dim", f"{model.name}: {sentence(model.fit_reason)}", width)
    if model.state == "loading":
        return marked("info", f"{model.name} is being loaded.", width)
    return marked("dim", f"{model.name} is loaded by the first request for it, or by l.", width)


def _not_offered(model: ModelView, width: int) -> tuple[Line, ...]:
    """Why a loaded model that is to be offered is not."""
    said = f"Not offered to the network: {sentence(model.unoffered)}"
    return marked("warn", said, width) if model.unoffered else ()


def detail(
    model: ModelView, report: FitReport | FaultView | None, width: int, *, ascii: bool = False
) -> tuple[Line, ...]:
    """A model: its state, its fit report, and what it is."""
    tone = TONES[model.state]
    head: Line = (
        Span(f"{MARKS[tone]} ", tone),
        Span(model.name, "strong"),
        Span(f"  {state_word(model)}", tone),
    )
    lines: list[Line] = [head, NOTHING]
    if model.fault is not None:
        lines += [*fault_lines(model.fault, width), NOTHING]
    if isinstance(report, FitReport):
        lines += [*fit.lines(report, width, loaded=model.state == "warm", ascii=ascii), NOTHING]
    elif report is not None and model.fault is None:
        lines += [*fault_lines(report, width), NOTHING]
    elif model.kind == "url":
        lines += [*marked("dim", "It runs on another server and needs no memory here.", width), NOTHING]
    elif report is None:
        lines += [*marked("info", "What it needs is being worked out.", width), NOTHING]
    if model.offer:
        lines += [*offers.lines(model, width), NOTHING]
    for label, text in _facts(model):
        lines += fact(label, text, width)
    return (*lines, *path_fact("from", model.source, width))


def _facts(model: ModelView) -> tuple[tuple[str, str], ...]:
    kind = " ".join(text for text in (model.architecture, model.quantization) if text)
    file = f"{kind}, {size(model.size_bytes)}" if kind and model.size_bytes else kind
    busy = f"{model.in_flight} running, {model.queued} waiting, {plural(model.slots, 'slot')}"
    also = (("loaded when the node starts",) if model.preload else ()) + (
        ("never leaves this machine",) if model.host_only else ()
    )
    return (
        ("requests", busy),
        ("kept", f"{kept(model.keep_alive_s)} when idle" if model.keep_alive_s else "unloaded when idle"),
        ("file", file),
        ("also named", ", ".join(model.aliases)),
        ("besides", ", ".join(also)),
    )
