from __future__ import annotations

import pytest

from relaydesk.core.errors import LocalError
from relaydesk.core.gateway.ollama.facts import Loaded
from relaydesk.core.gateway.ollama.keep_alive import MAX_S
from relaydesk.engine.infer.spec import EngineBuffer, EngineReady
from relaydesk.engine.pool.facts import model_facts
from tests.support.clock import FakeClock
from tests.support.scripted_hub import MIB, ScriptedHub

CLOCK = FakeClock()


def loaded(hub: ScriptedHub) -> Loaded | None:
    return model_facts(hub.pool, "tiny", CLOCK).loaded


async def test_a_model_that_is_loaded_and_when_it_leaves(hub: ScriptedHub) -> None:
    await hub.add("tiny", aliases=("small",))
    assert loaded(hub) is None
    await hub.warm()
    found = loaded(hub)
    assert found is not None
    assert found.bytes == hub.pool.held_bytes() > MIB
    assert found.vram_bytes == 0
    assert 0 <= CLOCK.wall_ms() + 300_000 - found.expires_at_ms < 5000
    facts = model_facts(hub.pool, "small", CLOCK)
    assert (facts.tag, facts.context_length, facts.family) == ("tiny:latest", 512, "llama")
    with pytest.raises(LocalError):
        model_facts(hub.pool, "nope", CLOCK)


async def test_both_engines_of_a_model_count(hub: ScriptedHub) -> None:
    await hub.add("tiny")
    embedder = hub.registry.embedder("tiny")
    await hub.warm(embedder)
    alone = loaded(hub)
    assert alone is not None
    assert alone.bytes == hub.pool.held_bytes()
    await hub.warm()
    both = loaded(hub)
    assert both is not None
    assert both.bytes == hub.pool.held_bytes() > alone.bytes
    hub.pool.runner(embedder).release(await hub.pool.runner(embedder).acquire(), -1)
    longest = loaded(hub)
    assert longest is not None
    assert longest.expires_at_ms == CLOCK.wall_ms() + MAX_S * 1000


async def test_for_ever_is_a_date_that_clients_can_hold(hub: ScriptedHub) -> None:
    await hub.add("tiny", keep_alive_s=-1)
    await hub.warm()
    found = loaded(hub)
    assert found is not None
    assert found.expires_at_ms == CLOCK.wall_ms() + MAX_S * 1000


async def test_memory_of_gpus_is_told_apart_from_the_hosts(hub: ScriptedHub) -> None:
    await hub.add("tiny")
    hub.starter.ready = EngineReady(
        pid=1,
        slots=2,
        ctx_slot=512,
        load_s=0.1,
        buffers=tuple(
            EngineBuffer(device, "model", size)
            for device, size in (("CUDA0", 5), ("CUDA1", 7), ("CUDA_Host", 100), ("CPU", 100), ("CPU_AMX", 9))
        ),
    )
    await hub.warm()
    found = loaded(hub)
    assert found is not None
    assert found.vram_bytes == 12
