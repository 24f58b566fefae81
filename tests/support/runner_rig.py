"""One runner over scripted engines, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.pool.lease import Lease
from relaydesk.engine.pool.runner import ModelRunner
from relaydesk.engine.pool.starter import RunningEngine
from tests.support.jump_loop import LoopClock
from tests.support.scripted_engine import ScriptedStarter

SPEC = ModelSpec(name="tiny", path="/tiny.gguf")


class Rig:
    """The runner, its engines, and what it was asked and told."""

    def __init__(self, **starter: Any) -> None:
        self.starter = ScriptedStarter(**starter)
        self.keep_alive_s = 100
        self.queue = 1000
        self.changes: list[str] = []
        self.on_change: Callable[[str], object] = lambda state: None
        self.started: list[RunningEngine] = []
        self.started_gate = asyncio.Event()
        self.started_gate.set()
        self.runner = ModelRunner(
            "tiny",
            LoopClock(),
            self._start,
            self._on_started,
            keep_alive_s=lambda: self.keep_alive_s,
            queue_limit=lambda: self.queue,
            slots=lambda: 2,
            changed=self._changed,
            progressed=lambda name: None,
        )

    def _changed(self, name: str) -> None:
        self.changes.append(self.state)
        self.on_change(self.state)

    async def _start(self, runner: ModelRunner) -> RunningEngine:
        runner.held_bytes = 100
        try:
            return await self.starter.start(SPEC, 1024, 60, runner.progress)
        except BaseException:
            runner.held_bytes = 0
            raise

    async def _on_started(self, runner: ModelRunner, running: RunningEngine) -> None:
        await self.started_gate.wait()
        self.started.append(running)

    @property
    def state(self) -> str:
        """Of its life."""
        return self.runner.life.state

    @property
    def engines(self) -> int:
        """How many were started."""
        return len(self.starter.engines.get("tiny", []))

    async def warm(self) -> None:
        """Load it without a request."""
        self.runner.want(force=False)
        await settle()
        assert self.state == "warm"

    def request(self) -> asyncio.Task[Lease]:
        """Ask for a lease in a task of its own."""
        return asyncio.create_task(self.runner.acquire())

    def nothing_left(self) -> None:
        """No engine, no memory held, nobody who waits or is answered."""
        assert self.starter.alive == []
        assert self.runner.running is None
        assert self.runner.held_bytes == 0
        assert self.runner.life.in_flight == self.runner.waiting == 0


async def settle() -> None:
    """Let everybody run who can."""
    for _ in range(12):
        await asyncio.sleep(0)
