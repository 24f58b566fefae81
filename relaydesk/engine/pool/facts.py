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
        _loaded(pool, entry.spec.name, clock.wall_ms()),
    )


def _loaded(pool: Pool, name: str, now_ms: int) -> Loaded | None:
    """The model's engines together: that which writes and that which embeds."""
    warm = [runner for runner in pool.beside(name) if runner.life.state == "warm"]
    if not warm:
        return None
    lefts = [runner.left_ms() for runner in warm]
    left_ms = max(_MAX_MS if left is None else left for left in lefts)
    return Loaded(pool.held_by(name), sum(map(_vram, warm)), now_ms + left_ms)


def _vram(runner: ModelRunner) -> int:
    """Bytes on GPUs. Memory of the host that a GPU can reach is the host's."""
    ready = runner.running.ready if runner.running is not None else None
    buffers = ready.buffers if ready is not None else ()
    return sum(
        each.size_bytes
        for each in buffers
        if not each.device.startswith("CPU") and not each.device.endswith("_Host")
    )
