"""Any order of what may happen to a runner: nothing leaks, nobody waits for ever, no two engines at once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from relaydesk.core.errors import EnvError, FaultError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.pool.lease import Lease
from relaydesk.engine.pool.runner import ModelRunner
from relaydesk.engine.pool.starter import RunningEngine
from tests.support.jump_loop import LoopClock, run
from tests.support.scripted_engine import ScriptedStarter

WALKS = 40
SPEC = ModelSpec(name="tiny", path="/tiny.gguf")
FAULTS = {
    "fail": EnvError("model_load_failed", "the engine said no"),
    "no room": EnvError("model_unavailable", "no room"),
}


class World:
    """A runner, its requests, and what must hold at every moment."""

    def __init__(self, load_s: float, stop_s: float, started_s: float) -> None:
        self.starter = ScriptedStarter(load_s=load_s, stop_s=stop_s)
        self.started_s = started_s
        self.keep_alive_s = 5
        self.tasks: list[asyncio.Task[None]] = []
        self.held: dict[int, Lease] = {}
        self.leave: list[asyncio.Event] = []
        self.on_change: int | None = None
        self.beside = False
        self.runner = ModelRunner(
            "tiny",
            LoopClock(),
            self._start,
            self._started,
            keep_alive_s=lambda: self.keep_alive_s,
            queue_limit=lambda: 50,
            slots=lambda: 2,
            changed=self._changed,
            progressed=lambda name: None,
        )

    def _changed(self, name: str) -> None:
        # In the very moment: what was granted or refused has not been seen by whoever waits.
        if self.on_change is not None and self.on_change < len(self.tasks):
            self.tasks[self.on_change].cancel()
            self.on_change = None

    async def _start(self, runner: ModelRunner) -> RunningEngine:
        self.beside = self.beside or bool(self.starter.alive)
        runner.held_bytes = 100
        try:
            return await self.starter.start(SPEC, 1024, 60, runner.progress)
        except BaseException:
            runner.held_bytes = 0
            raise

    async def _started(self, runner: ModelRunner, running: RunningEngine) -> None:
        await asyncio.sleep(self.started_s)

    async def _request(self, number: int) -> None:
        """As `Pool.lease` and a run do: a bounded wait, then a slot, then a while."""
        try:
            async with asyncio.timeout(700):
                lease = await self.runner.acquire()
        except FaultError:
            return
        self.held[number] = lease
        try:
            async with lease.slots.slot("ann"):
                await self.leave[number].wait()
        except FaultError:
            assert lease.fault is not None
        finally:
            del self.held[number]
            self.runner.release(lease)

    async def step(self, name: str, value: int) -> None:
        runner = self.runner
        match name:
            case "come":
                self.leave.append(asyncio.Event())
                self.tasks.append(asyncio.create_task(self._request(len(self.tasks))))
            case "cancel" if value < len(self.tasks):
                self.tasks[value].cancel()
            case "cancel at a change":
                self.on_change = value
            case "leave" if value < len(self.tasks):
                self.leave[value].set()
            case "yield":
                for _ in range(value):
                    await asyncio.sleep(0)
            case "pass":
                await asyncio.sleep((0.1, 0.6, 1.1, 4.0, 6.0, 70.0)[value % 6])
            case "crash" if runner.running is not None:
                self.starter.crash("tiny")
            case "want":
                runner.want(force=value % 2 == 0)
            case "unload":
                runner.unload(force=value % 2 == 0)
            case "unload when idle":
                runner.unload_when_idle()
            case "ask to leave" if runner.life.state == "warm":
                runner.leaving = True
            case "stay":
                runner.stay()
            case "evict":
                asyncio.create_task(runner.evict())  # noqa: RUF006  (as short as the loop)
            case "keep":
                self.keep_alive_s = (0, 5, -1)[value % 3]
                runner.retime()
            case "fail" | "no room" if len(self.starter.errors) < 3:
                self.starter.errors.append(FAULTS[name])

    def check(self) -> None:
        life = self.runner.life
        assert not self.beside, "an engine was started beside another"
        assert len(self.starter.alive) <= 1
        if life.state in ("cold", "unavailable"):
            assert self.starter.alive == []
            assert self.runner.held_bytes == 0
        if life.state == "warm":
            assert self.starter.alive or self.crashed
            assert life.in_flight == len(self.runner._leases)
        else:
            assert life.in_flight == 0
            assert not self.runner._leases
        assert len(self.runner._waiters) == life.waiting
        if self.runner.slots is not None:
            # Nobody waits for a slot of an engine that has gone.
            assert life.state == "warm" or self.crashed or not self.runner.slots.waiting
        for lease in self.held.values():
            # A lease holds its engine, or knows why it does not.
            assert lease.fault is not None or self.starter.alive or self.crashed

    @property
    def crashed(self) -> bool:
        """Dead, and the news of it is still on its way."""
        running = self.runner.running
        return running is not None and running.exited is not None and running.exited.done()


STEPS = (
    ["come"] * 5
    + ["cancel", "leave", "yield", "pass"] * 3
    + ["crash", "want", "unload", "unload when idle", "ask to leave", "stay", "evict", "keep"]
    + ["fail", "no room", "cancel at a change", "cancel at a change"]
)


async def _live(steps: list[tuple[str, int]], close: bool, **seconds: Any) -> None:
    world = World(**seconds)
    for name, value in steps:
        await world.step(name, value)
        world.check()
    if close:
        await world.runner.close()
    else:
        world.runner.stay()
        world.keep_alive_s = 1
        world.runner.retime()
    for leave in world.leave:
        leave.set()
    # Longer than any back-off, queue and time-out: whoever still waits would wait for ever.
    if world.tasks:
        _, pending = await asyncio.wait(world.tasks, timeout=2000)
        assert not pending
        for task in world.tasks:
            assert task.cancelled() or task.exception() is None
    await asyncio.sleep(200)
    world.check()
    assert not world.held
    if not close:
        assert world.runner.life.state == "cold"
        await world.runner.close()
    assert world.starter.alive == []
    assert world.runner.running is None
    assert world.runner.held_bytes == world.runner.parked == 0


@pytest.mark.parametrize("seed", range(10))
def test_any_order(seed: int) -> None:
    """Plain random walks: many long ones find more here than few that can be shrunk."""
    for walk in range(WALKS):
        rng = random.Random(f"{seed} {walk}")
        steps = [(rng.choice(STEPS), rng.randrange(12)) for _ in range(60)]
        close = rng.random() < 0.5
        seconds = {name: rng.choice([0.0, 0.5]) for name in ("load_s", "stop_s", "started_s")}
        try:
            run(lambda: _live(steps, close, **seconds))  # noqa: B023  (run before the next turn)
        except BaseException as error:
            error.add_note(f"seed {seed}, walk {walk}: {steps} close={close} {seconds}")
            raise
