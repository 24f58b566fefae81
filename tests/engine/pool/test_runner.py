from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from relaydesk.core.errors import EnvError, Fault, FaultError
from relaydesk.engine.pool.runner import ModelRunner
from relaydesk.engine.pool.starter import RunningEngine
from tests.support.jump_loop import run
from tests.support.runner_rig import Rig, settle

BROKEN = EnvError("model_load_failed", "the engine said no")
STOPPING = Fault("shutting_down", "the hub is stopping")


def virtual(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def wrapped() -> None:
        run(test)

    wrapped.__name__ = test.__name__
    return wrapped


@virtual
async def test_one_engine_serves_all_who_wait() -> None:
    rig = Rig(load_s=3.0)
    requests = [rig.request() for _ in range(10)]
    leases = await asyncio.gather(*requests)
    assert rig.engines == 1
    assert len({id(lease.engine) for lease in leases}) == 1
    assert leases[0].alias == "tiny"
    assert rig.runner.life.in_flight == 10
    for lease in leases:
        rig.runner.release(lease)
        rig.runner.release(lease)  # a second time changes nothing
    assert rig.runner.life.in_flight == 0
    assert rig.runner.last_used_at_ms > 0
    await asyncio.sleep(99)
    assert rig.state == "warm"
    await asyncio.sleep(2)
    assert rig.state == "cold"
    rig.nothing_left()
    assert rig.changes == ["loading", "warm", "unloading", "cold"]


@virtual
async def test_a_failed_load_is_told_to_all_and_then_backs_off() -> None:
    rig = Rig(errors=[BROKEN])
    for request in [rig.request(), rig.request()]:
        with pytest.raises(FaultError) as caught:
            await request
        assert caught.value.fault == replace(BROKEN.fault, retry_after=1)
    with pytest.raises(FaultError) as caught:
        await rig.request()
    assert caught.value.fault.retry_after == 1
    assert rig.runner.held_bytes == 0
    await asyncio.sleep(1.1)
    await rig.request()
    assert rig.state == "warm"


@virtual
async def test_what_is_no_fault_of_the_engine_fails_the_load_too() -> None:
    rig = Rig()

    async def broken(runner: ModelRunner) -> RunningEngine:
        raise KeyError("surprise")

    rig.runner._start = broken
    with pytest.raises(FaultError) as caught:
        await rig.request()
    assert caught.value.fault.code == "model_load_failed"


@virtual
async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    rig = Rig(load_s=1.0)
    first, second = rig.request(), rig.request()
    await settle()
    first.cancel()
    await settle()
    assert rig.runner.life.waiting == 1
    rig.runner.release(await second)
    assert rig.runner.life.in_flight == 0


@virtual
async def test_cancelled_in_the_moment_of_the_grant() -> None:
    """Both orders: after the grant is made but before it is seen, and before it is made but not seen."""
    rig = Rig()
    rig.starter.gate.clear()
    late = rig.request()
    await settle()
    rig.on_change = lambda state: late.cancel() if state == "warm" else None
    rig.starter.gate.set()
    await asyncio.wait([late])
    assert late.cancelled()
    assert (rig.state, rig.runner.life.in_flight, rig.runner.waiting) == ("warm", 0, 0)
    rig = Rig()
    rig.starter.gate.clear()
    early = rig.request()
    await settle()
    rig.starter.gate.set()
    while rig.state != "warm":
        early.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([early])
    assert early.cancelled()
    assert rig.runner.life.in_flight == rig.runner.waiting == 0


@virtual
async def test_all_waiters_gone_at_once_with_keep_alive_0() -> None:
    rig = Rig()
    rig.keep_alive_s = 0
    rig.starter.gate.clear()
    requests = [rig.request() for _ in range(3)]
    await settle()
    rig.starter.gate.set()
    while rig.state == "loading":
        for request in requests:
            request.cancel()
        await asyncio.sleep(0)
    await asyncio.sleep(1)
    for request in requests:
        assert request.cancelled()
    await rig.runner.close()
    rig.nothing_left()


@virtual
async def test_keep_alive_0_unloads_and_whoever_comes_meanwhile_gets_a_new_engine() -> None:
    rig = Rig(stop_s=1.0)
    rig.keep_alive_s = 0
    rig.runner.release(await rig.request())
    assert rig.state == "unloading"
    lease = await rig.request()
    assert rig.engines == 2
    assert rig.starter.alive == ["tiny"]
    rig.runner.release(lease)
    await rig.runner.settled()
    rig.nothing_left()


@virtual
async def test_a_shorter_keep_alive_counts_at_once() -> None:
    rig = Rig()
    rig.keep_alive_s = 3600
    rig.runner.release(await rig.request())
    await asyncio.sleep(50)
    rig.keep_alive_s = 10
    rig.runner.retime()
    await settle()
    assert rig.state == "cold"


@virtual
async def test_a_load_unloaded_while_it_starts_leaves_no_engine() -> None:
    rig = Rig(load_s=5.0)
    rig.runner.want(force=False)
    await asyncio.sleep(1)
    assert rig.runner.unload(force=False) is None
    await rig.runner.settled()
    assert rig.starter.cancelled == 1
    assert rig.state == "cold"
    rig.nothing_left()


@virtual
async def test_a_load_unloaded_in_the_moment_it_is_ready_leaves_no_engine() -> None:
    """Unloaded behind each step of the load, the last ones included."""
    for steps in range(12):
        rig = Rig(stop_s=0.5)
        rig.runner.want(force=False)
        for _ in range(steps):
            await asyncio.sleep(0)
        rig.runner.unload(force=True)
        await rig.runner.settled()
        await asyncio.sleep(2)
        rig.nothing_left()


@virtual
async def test_unloading_while_a_measurement_is_stored_leaves_no_engine() -> None:
    rig = Rig(stop_s=0.5)
    rig.started_gate.clear()
    waiting = rig.request()
    await settle()
    assert rig.starter.alive == ["tiny"]
    assert rig.state == "loading"
    rig.runner.unload(force=True)
    with pytest.raises(FaultError) as caught:
        await waiting
    assert caught.value.fault.code == "model_unloaded"
    await rig.runner.settled()
    rig.nothing_left()


@virtual
async def test_a_measurement_that_cannot_be_stored_stops_no_load() -> None:
    rig = Rig()

    async def fails(runner: ModelRunner, running: RunningEngine) -> None:
        raise EnvError("storage_failed", "the disk is full")

    rig.runner._started = fails
    await rig.request()
    assert rig.state == "warm"


@virtual
async def test_a_death_ends_leases_and_those_who_wait_for_a_slot() -> None:
    rig = Rig()
    lease = await rig.request()
    slots = [lease.slots.slot("ann") for _ in range(3)]
    for slot in slots[:2]:
        await slot.__aenter__()
    third = asyncio.create_task(slots[2].__aenter__())
    await settle()
    rig.starter.crash("tiny", "it was killed")
    with pytest.raises(FaultError) as caught:
        await third
    assert caught.value.fault.code == "engine_failed"
    assert "it was killed" in caught.value.fault.message
    assert lease.fault is not None
    assert lease.fault.code == "engine_failed"
    rig.runner.release(lease)
    assert rig.runner.restarts == 1
    assert rig.runner.held_bytes == 0
    again = await rig.request()  # waits for the restart
    assert again.fault is None
    assert rig.engines == 2
    for slot in slots[:2]:
        await slot.__aexit__(None, None, None)
    rig.runner.release(again)
    assert rig.runner.life.in_flight == 0


@virtual
async def test_a_lease_of_a_dead_run_counts_for_nothing() -> None:
    rig = Rig()
    old = await rig.request()
    rig.starter.crash("tiny")
    new = await rig.request()
    rig.runner.release(old)
    assert rig.runner.life.in_flight == 1
    rig.runner.release(new)
    assert rig.runner.life.in_flight == 0


@virtual
async def test_a_death_during_the_load_is_a_failed_load() -> None:
    rig = Rig()
    rig.started_gate.clear()
    waiting = rig.request()
    await settle()
    rig.starter.crash("tiny", "it was killed")
    with pytest.raises(FaultError) as caught:
        await waiting
    assert "it was killed" in caught.value.fault.message
    await asyncio.sleep(10)
    rig.nothing_left()


@virtual
async def test_a_forced_unload_ends_running_answers() -> None:
    rig = Rig()
    lease = await rig.request()
    assert rig.runner.unload(force=False) is not None
    assert rig.runner.unload(force=True) is None
    assert lease.fault is not None
    assert lease.fault.code == "model_unloaded"
    await rig.runner.settled()
    rig.runner.release(lease)
    rig.nothing_left()


@virtual
async def test_unload_when_idle_holds_new_requests_back_until_the_running_ones_end() -> None:
    rig = Rig()
    lease = await rig.request()
    rig.runner.unload_when_idle()
    late = rig.request()
    await asyncio.sleep(5)
    assert not late.done()
    assert rig.runner.waiting == 1
    rig.runner.release(lease)
    second = await late
    assert rig.engines == 2
    assert second.run != lease.run


@virtual
async def test_unload_when_idle_is_kept_while_it_loads() -> None:
    rig = Rig(load_s=2.0)
    request = rig.request()
    await settle()
    assert rig.runner.unload(force=False) is not None
    rig.runner.unload_when_idle()
    lease = await request
    assert rig.state == "warm"
    rig.runner.release(lease)
    await rig.runner.settled()
    assert rig.state == "cold"


@virtual
async def test_unload_when_idle_holds_where_the_engine_dies_first() -> None:
    rig = Rig()
    lease = await rig.request()
    rig.runner.unload_when_idle()
    rig.starter.crash("tiny")
    await settle()
    rig.runner.release(lease)
    await asyncio.sleep(50)
    assert rig.state == "cold"
    assert rig.engines == 1


@virtual
async def test_unload_when_idle_where_the_last_waiter_leaves_first() -> None:
    rig = Rig(load_s=2.0)
    request = rig.request()
    await settle()
    rig.runner.unload_when_idle()
    request.cancel()
    await asyncio.sleep(3)
    assert rig.state == "cold"
    rig.nothing_left()


@virtual
async def test_leaving_is_taken_back() -> None:
    rig = Rig()
    lease = await rig.request()
    rig.runner.leaving = True
    parked = rig.request()
    await settle()
    assert not parked.done()
    rig.runner.stay()
    assert (await parked).run == lease.run


@virtual
async def test_evict_spares_what_is_in_use_and_waits_for_the_memory() -> None:
    rig = Rig(stop_s=3.0)
    lease = await rig.request()
    assert not await rig.runner.evict()
    rig.runner.release(lease)
    assert await rig.runner.evict()
    rig.nothing_left()
    assert not await rig.runner.evict()


@virtual
async def test_no_more_wait_for_a_load_than_the_queue_allows() -> None:
    rig = Rig(load_s=1.0)
    rig.queue = 2
    requests = [rig.request() for _ in range(2)]
    await settle()
    with pytest.raises(FaultError) as caught:
        await rig.request()
    assert caught.value.fault.code == "queue_full"
    await asyncio.gather(*requests)
    await rig.request()


@virtual
async def test_the_end_of_the_node_refuses_everybody_wherever_they_wait() -> None:
    rig = Rig(load_s=1.0)
    waiting = rig.request()
    await settle()
    rig.runner.fail_waiters(STOPPING)
    with pytest.raises(FaultError) as caught:
        await waiting
    assert caught.value.fault == STOPPING
    rig = Rig()
    lease = await rig.request()
    rig.runner.leaving = True
    parked = rig.request()
    await settle()
    rig.runner.fail_waiters(STOPPING)
    with pytest.raises(FaultError):
        await parked
    with pytest.raises(FaultError):
        await rig.request()
    assert rig.runner.want(force=True) == STOPPING
    assert lease.fault == STOPPING


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 6, 20])
def test_close_at_any_moment_leaves_no_engine(steps: int) -> None:
    async def main() -> None:
        rig = Rig(stop_s=1.0)
        requests = [rig.request() for _ in range(2)]
        for _ in range(steps):
            await asyncio.sleep(0)
        await rig.runner.close()
        done, pending = await asyncio.wait(requests, timeout=1)
        assert not pending
        for request in done:
            if request.exception() is None:
                assert request.result().fault is not None
                rig.runner.release(request.result())
        rig.nothing_left()
        await asyncio.sleep(1000)  # no timer starts anything again
        rig.nothing_left()

    run(main)


@virtual
async def test_close_waits_for_a_stop_under_way() -> None:
    rig = Rig(stop_s=4.0)
    await rig.warm()
    rig.runner.unload(force=False)
    await settle()
    await rig.runner.close()
    rig.nothing_left()
    assert rig.starter.engine("tiny").stops == 1


@virtual
async def test_an_engine_that_does_not_stop_properly_does_not_block_its_model() -> None:
    rig = Rig()
    await rig.warm()

    async def fails() -> None:
        rig.starter.engine("tiny").die()
        raise OSError("no such socket")

    rig.starter.engine("tiny").aclose = fails  # type: ignore[method-assign]
    rig.runner.unload(force=False)
    await rig.runner.settled()
    assert rig.state == "cold"
    with suppress(FaultError):
        await rig.request()
    assert rig.engines == 2
