"""What a model is and holds right now, for clients of Ollama's dialect."""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.ollama.facts import Facts, Loaded, facts_of
from relaydesk.core.gateway.ollama.keep_alive import MAX_S
from relaydesk.core.ports import Clock
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.pool.runner import ModelRunner

_MAX_MS: Final = MAX_S * 1000


def model_facts(pool: Pool, name: str, clock: Clock) -> Facts:
    """The facts of a registered model. Raises `LocalError` ``model_not_found``."""
    entry = pool.registry.entry(name)
    return facts_of(
        entry.spec,
        entry.header,
        pool.registry.capabilities(entry.spec.name),
        pool.context(entry),
        _loaded(pool.runner(entry.spec.name), clock.wall_ms()),
    )


def _loaded(runner: ModelRunner, now_ms: int) -> Loaded | None:
    if runner.life.state != "warm" or runner.running is None:
        return None
    ready = runner.running.ready
    # Memory of the host that a GPU can reach is the host's.
    vram = sum(
        each.size_bytes
        for each in (ready.buffers if ready is not None else ())
        if not each.device.startswith("CPU") and not each.device.endswith("_Host")
    )
    left_ms = runner.left_ms()
    return Loaded(runner.held_bytes, vram, now_ms + (_MAX_MS if left_ms is None else left_ms))
