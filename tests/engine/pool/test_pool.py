from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError, Fault, FaultError
from relaydesk.engine.infer.spec import EngineReady
from relaydesk.engine.pool.lease import Lease
from tests.support.scripted_hub import MIB, ScriptedHub

# A tiny model needs 83 MiB by the rules of fit: one has room here, two do not.
ONE = 100
TWO = 180


@asynccontextmanager
async def hub_of(path: Path, memory_mib: int, *names: str, **fields: object) -> AsyncIterator[ScriptedHub]:
    async with ScriptedHub(path, memory_mib=memory_mib) as hub:
        for name in names:
            await hub.add(name, **fields)
        yield hub


@asynccontextmanager
async def using(hub: ScriptedHub, name: str) -> AsyncIterator[Lease]:
    record = hub.journal.open("r", model=name, key="ann", route="/", stream=False, choices=1)
    try:
        async with hub.pool.lease(name, record) as lease:
            yield lease
    finally:
        record.finish(200)


async def use(hub: ScriptedHub, name: str) -> int:
    async with using(hub, name) as lease:
        return lease.run


def refused(hub: ScriptedHub, name: str) -> Fault | None:
    try:
        hub.pool.check(name)
    except FaultError as error:
        return error.fault
    return None


async def test_the_longest_unused_makes_room(tmp_path: Path) -> None:
    async with hub_of(tmp_path, TWO, "a", "b", "c") as hub:
        for name in ("a", "b", "a"):
            await use(hub, name)
        assert sorted(hub.starter.alive) == ["a", "b"]
        await use(hub, "c")
        assert sorted(hub.starter.alive) == ["a", "c"]
        assert hub.pool.held_bytes() == 2 * 83 * MIB


async def test_one_in_use_is_waited_for_and_takes_no_new_requests(tmp_path: Path) -> None:
    async with hub_of(tmp_path, ONE, "a", "b") as hub:
        async with using(hub, "a"):
            assert refused(hub, "b") is None
            second = asyncio.create_task(use(hub, "b"))
            await hub.until(lambda: hub.pool.runner("a").leaving)
            late = asyncio.create_task(use(hub, "a"))
            await asyncio.sleep(0.05)
            assert hub.starter.alive == ["a"]
            assert not second.done()
            assert not late.done()
            assert not hub.pool.is_warm("a")
        assert await second == 1
        # And back again: neither waits for ever for the other.
        assert await late == 2
        assert hub.starter.alive == ["a"]


async def test_waiting_for_room_is_not_loading(tmp_path: Path) -> None:
    async with hub_of(tmp_path, ONE, "a", "b") as hub:
        async with using(hub, "a"):
            hub.starter.gate.clear()
            task = asyncio.create_task(use(hub, "b"))
            await asyncio.sleep(0.05)
            (waiting,) = [each for each in hub.journal.view().in_flight if each.model == "b"]
            assert waiting.state == "queued"
        await hub.until(lambda: any(each.state == "loading" for each in hub.journal.view().in_flight))
        hub.starter.gate.set()
        await task
        view = hub.journal.view().recent[0]
        assert view.load_ms is not None and view.load_ms < 1000


async def test_models_that_want_each_others_room_all_get_their_turn(tmp_path: Path) -> None:
    async with hub_of(tmp_path, ONE, "a", "b", "c") as hub:
        await asyncio.wait_for(asyncio.gather(*(use(hub, name) for name in "abcabcabc")), 10)
        assert len(hub.starter.alive) == 1
        assert hub.pool.held_bytes() == 83 * MIB
        await hub.idle()


async def test_a_model_that_is_being_loaded_or_unloaded_is_waited_for(tmp_path: Path) -> None:
    """Memory on its way in or out is no reason to refuse: it comes back."""
    async with hub_of(tmp_path, ONE, "a", "b") as hub:
        hub.starter.gate.clear()
        first = asyncio.create_task(use(hub, "a"))
        await hub.until(lambda: hub.starter.starts)
        assert refused(hub, "b") is None
        second = asyncio.create_task(use(hub, "b"))
        hub.starter.gate.set()
        await asyncio.gather(first, second)

        hub.starter.stop_s = 0.2
        async with using(hub, "a"):
            pass
        hub.pool.runner("a").unload(force=False)
        assert hub.pool.runner("a").life.state == "unloading"
        assert refused(hub, "a") is None
        assert refused(hub, "b") is None
        await use(hub, "b")


async def test_who_waits_for_room_in_vain_is_refused_and_the_other_stays(tmp_path: Path) -> None:
    async with hub_of(tmp_path, ONE, "a", "b") as hub:
        hub.limits = replace(hub.limits, load_timeout_s=0.3)
        async with using(hub, "a"):
            with pytest.raises(FaultError) as caught:
                await use(hub, "b")
            assert caught.value.fault.code == "model_unavailable"
            assert '"b" needs about 83 MB VRAM: the host has 17 MB free' in caught.value.fault.message
            assert not hub.pool.runner("a").leaving
            await use(hub, "a")
        assert hub.starter.alive == ["a"]


async def test_a_cancelled_wait_for_room_lets_the_other_stay(tmp_path: Path) -> None:
    async with hub_of(tmp_path, ONE, "a", "b") as hub:
        async with using(hub, "a"):
            hub.pool.runner("b").want(force=False)
            await hub.until(lambda: hub.pool.runner("a").leaving)
            parked = asyncio.create_task(use(hub, "a"))
            await asyncio.sleep(0.01)
            hub.pool.runner("b").unload(force=False)
            await parked
        assert hub.starter.alive == ["a"]
        await hub.until(lambda: hub.pool.runner("b").life.state == "cold")
        assert hub.pool.held_bytes() == 83 * MIB


async def test_pinned_models_make_no_room(tmp_path: Path) -> None:
    async with hub_of(tmp_path, ONE, "a", "b", keep_alive_s=-1) as hub:
        await use(hub, "a")
        fault = refused(hub, "b")
        assert fault is not None
        assert fault.code == "model_unavailable"
        with pytest.raises(FaultError):
            await use(hub, "b")
        assert hub.starter.alive == ["a"]
        assert hub.pool.runner("b").life.state == "cold"


async def test_a_loaded_model_fits_whatever_it_holds(tmp_path: Path) -> None:
    async with hub_of(tmp_path, ONE, "a", "b") as hub:
        await use(hub, "a")
        assert hub.pool.fit_report(hub.registry.entry("a")).fits
        report = hub.pool.fit_report(hub.registry.entry("b"))
        assert report.fits
        assert report.unloads == ("a",)
        async with using(hub, "a"):
            assert not hub.pool.fit_report(hub.registry.entry("b")).fits
            assert hub.pool.fit_report(hub.registry.entry("a")).fits


async def test_memory_counts_from_before_a_load_and_comes_back_however_it_ends(tmp_path: Path) -> None:
    async with hub_of(tmp_path, TWO, "a") as hub:
        hub.starter.gate.clear()
        runner = hub.pool.runner("a")
        runner.want(force=False)
        await hub.until(lambda: hub.starter.starts)
        assert hub.pool.held_bytes() == 83 * MIB
        assert hub.pool.memory.read().free_bytes() == (TWO - 83) * MIB
        runner.unload(force=False)
        await runner.settled()
        assert hub.pool.held_bytes() == 0

        hub.starter.errors.append(EnvError("model_load_failed", "no"))
        hub.starter.gate.set()
        with pytest.raises(FaultError):
            await use(hub, "a")
        assert hub.pool.held_bytes() == 0
        runner.want(force=True)
        await hub.until(lambda: hub.pool.is_warm("a"))
        hub.starter.crash("a")
        await hub.until(lambda: runner.life.state == "unavailable")
        assert hub.pool.held_bytes() == 0


async def test_a_request_waits_for_the_load_timeout_and_a_minute(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relaydesk.engine.pool import pool as module

    monkeypatch.setattr(module, "HEADROOM_S", 0.1)
    await hub.add("a")
    hub.limits = replace(hub.limits, load_timeout_s=0.1)
    hub.starter.gate.clear()
    with pytest.raises(FaultError) as caught:
        await use(hub, "a")
    assert caught.value.fault.code == "model_load_timeout"
    assert hub.pool.runner("a").waiting == 0
    hub.starter.gate.set()
    await use(hub, "a")


async def test_a_failed_load_is_refused_with_its_own_error_until_its_back_off_is_over(
    hub: ScriptedHub,
) -> None:
    await hub.add("a")
    hub.starter.errors.append(EnvError("model_load_failed", "the engine said no", "try another"))
    with pytest.raises(FaultError):
        await use(hub, "a")
    fault = refused(hub, "a")
    assert fault is not None
    assert (fault.message, fault.hint, fault.retry_after) == ("the engine said no", "try another", 1)
    await asyncio.sleep(0.15)
    assert refused(hub, "a") is None


async def test_a_file_that_is_gone_is_refused_and_one_that_came_back_is_loaded(hub: ScriptedHub) -> None:
    await hub.add("a")
    file = hub.file("a")
    data = file.read_bytes()
    file.unlink()
    with pytest.raises(FaultError) as caught:
        await use(hub, "a")
    assert str(file) in caught.value.fault.message
    assert hub.starter.starts == []
    fault = refused(hub, "a")
    assert fault is not None
    file.write_bytes(data)
    hub.pool.runner("a").want(force=True)
    await hub.until(lambda: hub.pool.is_warm("a"))


async def test_what_a_load_used_is_kept_for_the_same_options_only(hub: ScriptedHub) -> None:
    hub.starter.ready = EngineReady(
        pid=1, slots=2, ctx_slot=512, load_s=0.1,
        weights_bytes=MIB, kv_bytes=2 * MIB, compute_bytes=3 * MIB, rss_bytes=50 * MIB,
    )  # fmt: skip
    await hub.add("a")
    await hub.warm("a")
    entry = hub.registry.entry("a")
    standing = hub.pool.standing(entry)
    assert standing is not None
    assert standing.need.measured
    assert standing.need.kv == 2 * MIB
    changed = await hub.registry.change("a", {"slots": 3})
    standing = hub.pool.standing(changed)
    assert standing is not None
    assert not standing.need.measured
    back = await hub.registry.change("a", {"slots": 2})
    standing = hub.pool.standing(back)
    assert standing is not None
    assert standing.need.measured


async def test_the_end_of_the_node_refuses_everything(hub: ScriptedHub) -> None:
    await hub.add("a")
    fault = Fault("shutting_down", "the hub is stopping")
    hub.starter.gate.clear()
    waiting = asyncio.create_task(use(hub, "a"))
    await hub.until(lambda: hub.starter.starts)
    hub.pool.refuse_all(fault)
    with pytest.raises(FaultError) as caught:
        await waiting
    assert caught.value.fault == fault
    with pytest.raises(FaultError):
        await use(hub, "a")
    assert refused(hub, "a") == fault
    await hub.pool.close()
    assert hub.starter.cancelled == 1
    assert hub.starter.alive == []


async def test_a_removed_model_takes_its_engine_and_its_waiters_along(hub: ScriptedHub) -> None:
    await hub.add("a")
    hub.starter.gate.clear()
    waiting = asyncio.create_task(use(hub, "a"))
    await hub.until(lambda: hub.starter.starts)
    await hub.registry.remove("a")
    await hub.pool.forget("a")
    with pytest.raises(FaultError) as caught:
        await waiting
    assert caught.value.fault.code == "model_not_found"
    assert hub.pool.runners() == ()
    await hub.pool.forget("a")


async def test_a_model_removed_while_its_file_is_read_is_not_loaded(hub: ScriptedHub) -> None:
    await hub.add("a")
    hub.pool.runner("a").want(force=False)
    await hub.registry.remove("a")
    await hub.until(lambda: hub.pool.runner("a").life.state != "loading")
    assert hub.starter.alive == []
    assert hub.registry.names() == ()


async def test_a_far_server_needs_no_memory(tmp_path: Path) -> None:
    async with hub_of(tmp_path, 0, "far", kind="url", url="http://127.0.0.1:9/v1") as hub:
        await use(hub, "far")
        assert hub.pool.held_bytes() == 0
        with pytest.raises(FaultError) as caught:
            hub.pool.fit_report(hub.registry.entry("far"))
        assert caught.value.fault.code == "invalid_request"


async def test_retime_reaches_every_model(hub: ScriptedHub) -> None:
    await hub.add("a")
    await use(hub, "a")
    hub.limits = replace(hub.limits, keep_alive_s=0)
    hub.pool.retime()
    await hub.until(lambda: hub.starter.alive == [])
