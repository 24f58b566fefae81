"""What fronts see of the pool."""

from __future__ import annotations

from relaydesk.core.codec import fault_view
from relaydesk.core.pool.lifecycle import PublicState, public_state
from relaydesk.core.pool.memory import HostMemory
from relaydesk.core.pool.need import Standing
from relaydesk.core.pool.offer import unoffered
from relaydesk.core.pool.placement import HOST
from relaydesk.core.text import safe_text
from relaydesk.core.view.node_view import WorkersView
from relaydesk.core.view.sections import ModelsView, ModelView, WorkerView
from relaydesk.engine.gateway.journal import Journal
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.pool.registry import Entry
from relaydesk.engine.pool.runner import ModelRunner

# A far server's answers come from no machine of the pool.
SERVER = "server"


def models_view(pool: Pool, journal: Journal, share: int | None = None) -> ModelsView:
    """Every registered model, by name, with the memory they compete for and the requests it has.

    ``share`` is the setting for how many slots the relay network may hold.
    """
    memory = pool.memory.read()
    models = tuple(
        _model(pool, entry, memory, journal.standing(entry.spec.name), share)
        for entry in pool.registry.entries()
    )
    return ModelsView(pool.memory.view(), models)


def workers_view(pool: Pool) -> WorkersView:
    """Every engine that is loaded."""
    return WorkersView(tuple(_worker(runner) for runner in pool.runners() if runner.running))


def _model(
    pool: Pool, entry: Entry, memory: HostMemory, requests: tuple[int, int], share: int | None
) -> ModelView:
    running, waiting = requests
    spec, header = entry.spec, entry.header
    runner = pool.runner(spec.name)
    life = runner.life
    standing = pool.standing(entry, memory)
    state, fits, reason = _state(pool, entry, runner, standing)
    where = SERVER if spec.kind == "url" else HOST
    return ModelView(
        name=spec.name,
        state=state,
        fits=fits,
        fit_reason=safe_text(reason, 512),
        placement=where if fits else "",
        context_length=pool.context(entry),
        aliases=spec.aliases,
        kind=spec.kind,
        progress=life.progress if state == "loading" else None,
        slots=spec.slots,
        in_flight=running,
        queued=waiting,
        need_mib=standing.need.mib if standing is not None else 0,
        measured=standing.need.measured if standing is not None else False,
        size_bytes=spec.size_bytes,
        quantization=safe_text(header.file_type if header is not None else "", 32),
        architecture=header.architecture if header is not None else safe_text(""),
        source=safe_text(spec.source),
        owned=spec.owned,
        host_only=spec.host_only,
        offer=spec.offer,
        input_rate=spec.input_rate,
        output_rate=spec.output_rate,
        unoffered=safe_text(_unoffered(pool, entry, share) if spec.offer else ""),
        preload=spec.preload,
        keep_alive_s=pool.keep_alive_s(spec.name),
        last_used_at_ms=runner.last_used_at_ms,
        added_at_ms=spec.added_ms,
        fault=fault_view(life.error) if life.error is not None and state == "unavailable" else None,
    )


def _state(
    pool: Pool, entry: Entry, runner: ModelRunner, standing: Standing | None
) -> tuple[PublicState, bool, str]:
    """State, whether it fits, and why not.

    A model that only waits for others to fall idle does not fit now, but a request for it will be served:
    it stays ``cold``, so that a busy pool does not empty clients' pickers.
    """
    life = runner.life
    if life.state in ("warm", "loading"):
        return life.state, True, ""
    if life.state == "unavailable" and life.restarting:
        state = public_state(life)
        down = state == "unavailable" and life.error is not None
        return state, not down, life.error.message if down and life.error is not None else ""
    unfit = pool.refused(entry, standing)
    if unfit is not None:
        return "unavailable", False, unfit.message
    if life.state == "unavailable" and life.error is not None:
        return "unavailable", False, life.error.message
    if standing is not None and standing.decision.verdict == "wait":
        return "cold", False, "it will be loaded once models in use fall idle"
    return "cold", True, ""


def _unoffered(pool: Pool, entry: Entry, share: int | None) -> str:
    """Why strangers cannot use a model that is to be offered."""
    slots = pool.slots(entry.spec.name)
    completion = pool.registry.capabilities(entry.spec.name).completion
    return unoffered(
        entry.spec.kind, slots.count if slots is not None else None, completion=completion, share=share
    )


def _worker(runner: ModelRunner) -> WorkerView:
    running = runner.running
    assert running is not None
    assert runner.entry is not None
    return WorkerView(
        model=runner.name,
        kind=runner.entry.spec.kind,
        state=public_state(runner.life),
        url=running.url,
        pid=running.pid,
        memory_mb=runner.memory_mb,
        slots=runner.slots.count if runner.slots is not None else 0,
        busy=runner.slots.busy if runner.slots is not None else 0,
        started_at_ms=runner.started_at_ms,
        restarts=runner.restarts,
    )
