"""Engines that embed beside the engine of their model: what they hold, and when they go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.pool.setup import EMBEDDER
from tests.support import gguf_builder
from tests.support.scripted_hub import MIB, ScriptedHub

WEIGHTS = 20  # MiB
CHAT = "a"
SIDE = "a" + EMBEDDER


def file_with_weights(hub: ScriptedHub, name: str) -> Path:
    path = hub.dir / f"{name}.gguf"
    big = gguf_builder.Tensor("blk.0.big.weight", (1024, WEIGHTS * 256))
    path.write_bytes(gguf_builder.build(gguf_builder.LLAMA, (*gguf_builder.TENSORS, big)))
    return path


async def use(hub: ScriptedHub, name: str) -> None:
    record = hub.journal.open("r", model=name, key="ann", route="/", stream=False, choices=1)
    try:
        async with hub.pool.lease(name, record):
            pass
    finally:
        record.finish(200)


def need(hub: ScriptedHub, name: str) -> int:
    """What an engine needs by itself, in bytes."""
    standing = hub.pool.standing(hub.registry.entry(name))
    assert standing is not None
    return standing.need.bytes


@asynccontextmanager
async def hub_of(path: Path, memory_mib: int = 10_000, **fields: Any) -> AsyncIterator[ScriptedHub]:
    async with ScriptedHub(path, memory_mib=memory_mib) as hub:
        await hub.add(CHAT, path=str(file_with_weights(hub, CHAT)), **fields)
        yield hub


async def test_nobody_can_ask_for_an_embedder_by_name(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        assert [each.name for each in hub.registry.names()] == [CHAT]
        assert hub.registry.embedder(CHAT) == SIDE
        assert hub.registry.entry(SIDE).spec.slots == 1
        with pytest.raises(LocalError) as caught:
            hub.registry.entry("b" + EMBEDDER)
        assert caught.value.fault.code == "model_not_found"


async def test_weights_are_counted_once(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        chat, side = need(hub, CHAT), need(hub, SIDE)
        await use(hub, CHAT)
        assert hub.pool.held_bytes() == chat
        await use(hub, SIDE)
        shared = chat + side - hub.pool.held_bytes()
        assert WEIGHTS * MIB <= shared < (WEIGHTS + 1) * MIB
        assert hub.pool.runner(CHAT).unload(force=False) is None
        await hub.pool.runner(CHAT).settled()
        # The other one still maps them.
        assert hub.pool.held_bytes() == side


@pytest.mark.parametrize("names", [(CHAT, SIDE), (SIDE, CHAT)])
async def test_both_fit_where_a_second_copy_of_the_weights_would_not(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    async with hub_of(tmp_path) as hub:
        both = (need(hub, CHAT) + need(hub, SIDE)) // MIB
        hub.pool.memory.pretend_mib = both - WEIGHTS + 1
        for name in names:
            await use(hub, name)
        assert sorted(hub.starter.alive) == [CHAT, SIDE]
        hub.pool.memory.pretend_mib = both - WEIGHTS - 5
        await hub.pool.runner(names[1]).evict()
        await use(hub, names[1])
        assert hub.starter.alive == [names[1]]


@pytest.mark.parametrize("names", [(CHAT, SIDE), (SIDE, CHAT)])
async def test_another_model_gets_the_room_of_both(tmp_path: Path, names: tuple[str, str]) -> None:
    async with hub_of(tmp_path) as hub:
        for name in names:
            await use(hub, name)
        await hub.add("b", path=str(file_with_weights(hub, "b")))
        # One of the two gives back less than it holds, because the other maps the weights as well.
        hub.pool.memory.pretend_mib = hub.pool.held_bytes() // MIB + 5
        assert (need(hub, "b") // MIB) > hub.pool.runner(names[0]).held_bytes // MIB - WEIGHTS + 5
        await use(hub, "b")
        assert "b" in hub.starter.alive
        assert hub.pool.held_bytes() <= hub.pool.memory.pretend_mib * MIB


def victims(hub: ScriptedHub, name: str) -> set[str]:
    standing = hub.pool.standing(hub.registry.entry(name))
    assert standing is not None
    return set(standing.decision.victims)


async def test_what_unloading_one_of_them_gives_back_is_not_overrated(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        await hub.add("b", path=str(file_with_weights(hub, "b")))
        await use(hub, CHAT)
        await use(hub, SIDE)
        # The first to go leaves the weights behind, so it alone does not make this room.
        hub.pool.memory.pretend_mib = hub.pool.held_bytes() // MIB + WEIGHTS + 5
        assert victims(hub, "b") == {CHAT}
        hub.pool.memory.pretend_mib -= WEIGHTS + 4
        assert victims(hub, "b") not in (set(), {CHAT})
        # And what is itself to be loaded needs the weights that its other engine would give back.
        hub.pool.memory.pretend_mib = 10_000
        await hub.pool.runner(SIDE).evict()
        await hub.add("c")
        await use(hub, "c")
        hub.pool.memory.pretend_mib = (need(hub, SIDE) + need(hub, "c")) // MIB - 5
        assert victims(hub, SIDE) == {CHAT, "c"}


async def test_it_goes_with_its_model(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        for name in (CHAT, SIDE):
            await use(hub, name)
        await hub.pool.let_go(CHAT)
        await hub.until(lambda: hub.starter.alive == [])
        await use(hub, SIDE)
        await hub.registry.remove(CHAT)
        await hub.pool.forget(CHAT)
        assert hub.starter.alive == []
        assert hub.pool.runners() == ()
        with pytest.raises(FaultError):
            hub.registry.entry(SIDE)


async def test_it_stays_as_long_as_its_model_is_to(tmp_path: Path) -> None:
    async with hub_of(tmp_path, keep_alive_s=-1) as hub:
        assert hub.pool.keep_alive_s(SIDE) == -1
        await hub.registry.change(CHAT, {"keep_alive_s": 7})
        assert hub.pool.keep_alive_s(SIDE) == 7


async def test_a_model_made_to_embed_has_none_and_one_slot(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path) as hub:
        path = hub.dir / "nomic.gguf"
        path.write_bytes(gguf_builder.tiny(llama__pooling_type=1))
        entry = await hub.add("nomic", path=str(path), slots=4)
        assert hub.registry.embedder("nomic") == "nomic"
        assert (entry.spec.slots, entry.setup.pooling) == (1, "file")
        assert (await hub.registry.change("nomic", {"slots": 3})).spec.slots == 1
        can = hub.registry.capabilities("nomic")
        assert (can.embedding, can.completion, can.dimensions) == (True, False, 64)
        assert [spec.slots for spec in await hub.models.list()] == [1]


async def test_an_unusable_file_is_the_reason_here_too(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        Path(hub.registry.entry(CHAT).spec.path).unlink()
        await hub.registry.reread(CHAT)
        fault = hub.pool.unfit(hub.registry.entry(SIDE))
        assert fault is not None
        assert fault.code == "model_unavailable"
