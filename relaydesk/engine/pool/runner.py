"""One model's engine, run as its life says (`core/pool/lifecycle`).

The rules are all there; here are the effects: starting and stopping the engine, handing leases to those who
wait, and waking the life when time has passed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from relaydesk.core.errors import EnvError, Fault, FaultError
from relaydesk.core.pool import lifecycle as life
from relaydesk.core.ports import Clock
from relaydesk.engine.pool.lease import Lease
from relaydesk.engine.pool.registry import Entry
from relaydesk.engine.pool.slot_queue import SlotQueue, queue_full
from relaydesk.engine.pool.starter import RunningEngine
from relaydesk.engine.tasks import cancel_and_wait, spawn

_log: Final = logging.getLogger(__name__)

# Makes room and starts the engine; the argument is told the fraction loaded.
Start = Callable[["ModelRunner"], Awaitable[RunningEngine]]
# Called once the engine runs, before anybody may use it.
Started = Callable[["ModelRunner", RunningEngine], Awaitable[None]]

_CLOSED: Final = Fault("shutting_down", "the hub is stopping", "send the request again soon", retry_after=5)


class ModelRunner:
    """The engine of one registered model.

    ``changed`` is called after every step; ``keep_alive_s`` and ``queue_limit`` are asked when they matter,
    so that a changed setting counts at once.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        start: Start,
        started: Started,
        *,
        keep_alive_s: Callable[[], int],
        queue_limit: Callable[[], int],
        slots: Callable[[], int],
        changed: Callable[[str], None],
        progressed: Callable[[str], None],
    ) -> None:
        self.name = name
        self.life = life.COLD
        self.running: RunningEngine | None = None
        # What the engine was started with; the registration may have been changed since.
        self.entry: Entry | None = None
        self._running_run = 0
        self.slots: SlotQueue | None = None
        self.held_bytes = 0
        self.restarts = 0
        self.started_at_ms = 0
        self.last_used_at_ms = 0
        self.memory_mb = 0
        # Another model waits for this one's room, or the operator wants it unloaded: while it is loaded it
        # takes no new requests. ``parked`` counts those that wait until it has gone, or stays.
        self.leaving = False
        self.parked = 0
        self._unload_due = False
        # How long a client wants it kept, in seconds as for ``keep_alive_s``; None: as it is set.
        self._wanted_s: int | None = None
        self._let_go = False
        self._closed = False
        self._clock = clock
        self._start = start
        self._started = started
        self._keep_alive_s = keep_alive_s
        self._queue_limit = queue_limit
        self._slot_count = slots
        self._changed = changed
        self._progressed = progressed
        self._waiters: deque[asyncio.Future[Lease]] = deque()
        self._leases: set[Lease] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._load: tuple[int, asyncio.Task[None]] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._returned = asyncio.Event()
        self._ended: Fault | None = None
        # Its turn to load has come and the room is made; the pool says so.
        self.load_begun = False

    @property
    def waiting(self) -> int:
        """Requests that wait for the engine."""
        return len(self._waiters) + self.parked

    async def acquire(self) -> Lease:
        """Wait for the engine and take a lease. Raises `FaultError` where it is refused."""
        if self.waiting >= self._queue_limit():
            raise queue_full(self._queue_limit())
        await self._park()
        if self._ended is not None:
            raise _error(self._ended)
        waiter: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.feed(life.LoadRequested())
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
                self.feed(life.WaiterLeft())
            raise

    def acquire_now(self) -> Lease | None:
        """A lease where nothing has to be waited for, else None: what nearly every request gets."""
        if self.leaving or self._ended is not None or self._waiters or self.life.state != "warm":
            return None
        waiter: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.feed(life.LoadRequested())
        return waiter.result()

    def keeps_s(self) -> int:
        """How long it stays loaded when idle: as a client wants it, unless it is set to stay for ever."""
        own = self._keep_alive_s()
        return own if own < 0 or self._wanted_s is None else self._wanted_s

    def left_ms(self) -> int | None:
        """Milliseconds until it is unloaded if nobody asks for it from now on; None: it stays."""
        keeps_s = self.keeps_s()
        due = life.idle_at(self.life, keeps_s)
        if due is not None:
            return max(0, round((due - self._clock.mono()) * 1000))
        # In use, it stays that long from the end of its last request; else nothing is to end it.
        return keeps_s * 1000 if self.life.in_flight and keeps_s >= 0 else None

    def release(self, lease: Lease, wants_s: int | None = None) -> None:
        """Give a lease back. ``wants_s``: how long the client wants the model kept, None for nothing said.

        What a client wants counts until it is unloaded or another one says otherwise; one that says nothing
        never shortens it.
        """
        if lease in self._leases:
            self._leases.remove(lease)
            if wants_s is not None:
                self._wanted_s = wants_s
                self._let_go = self._let_go and wants_s == 0
            elif self._wanted_s is not None and 0 <= self._wanted_s < self._keep_alive_s():
                self._wanted_s = None
            self.last_used_at_ms = self._clock.wall_ms()
            self.feed(life.RequestDone(lease.run))

    def want(self, *, force: bool) -> Fault | None:
        """Load without a request; the fault where that is refused now."""
        if self._ended is not None:
            return self._ended
        return self.feed(life.LoadRequested(waits=False, force=force))

    def unload(self, *, force: bool) -> Fault | None:
        """Unload; the fault where it is in use and not forced."""
        return self.feed(life.Unload(force=force))

    def unload_when_idle(self) -> None:
        """Take no new requests and unload once the running ones have ended."""
        self.leaving = True
        self._unload_due = True
        self.retime()

    def let_go(self) -> None:
        """A client needs it no longer: it goes as soon as it is idle, and takes new requests until then.

        A request that says how long to keep it takes that back.
        """
        if self.life.state in ("warm", "loading"):
            self._let_go = True
            self.retime()

    def retime(self) -> None:
        """Idle time may be over by another setting than the one that was in force."""
        self.feed(life.Tick())

    async def settled(self) -> None:
        """Wait until an engine that is being stopped is gone."""
        while self._stopping is not None and not self._stopping.done():
            await asyncio.wait([self._stopping])

    async def evict(self) -> bool:
        """Unload to make room and wait until the memory is free; false where it is in use after all."""
        if self.feed(life.Evict()) is not None:
            return False
        await self.settled()
        return True

    def stay(self) -> None:
        """The room is not needed any more: new requests are taken again."""
        self.leaving = self._unload_due
        if not self.leaving:
            self._returned.set()

    def fail_waiters(self, fault: Fault) -> None:
        """Nobody waits any longer, now or later, and running answers end with ``fault``."""
        self._ended = fault
        self._returned.set()
        while self._waiters:
            _refuse(self._waiters.popleft(), fault)
            self.feed(life.WaiterLeft())
        self._tell_leases(self.life.run, fault)

    async def close(self, fault: Fault = _CLOSED) -> None:
        """End the engine, whatever it is doing; no process is left."""
        self._closed = True
        self.fail_waiters(fault)
        if self._load is not None:
            await cancel_and_wait(self._load[1])
        # A stop under way is waited for: cancelled in the middle it would leave the process behind.
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))
        if self.running is not None:
            await self._stop_engine(self.running)
        self.feed(life.Unload(force=True))
        self.feed(life.Stopped(self.life.run))

    def feed(self, event: life.Event) -> Fault | None:
        """One step of the life, with its effects; the fault of a `Deny`, if that was the answer."""
        before = self.life
        self.life, effects = life.step(before, event, self._clock.mono(), self.keeps_s())
        denied: Fault | None = None
        for effect in effects:
            match effect:
                case life.StartEngine() | life.StopEngine() if self._closed:
                    pass
                case life.StartEngine(run):
                    self._load = run, spawn(self._run_load(run), name=f"load {self.name}")
                case life.StopEngine(run):
                    self._stopping = self._keep(self._run_stop(run), f"stop {self.name}")
                case life.Grant(run, count):
                    self._grant(run, count)
                case life.Refuse(count, fault):
                    for _ in range(min(count, len(self._waiters))):
                        _refuse(self._waiters.popleft(), fault)
                case life.EndStreams(run, fault):
                    self._end_leases(run, fault)
                case life.Deny(fault):
                    denied = fault
        self._set_timer()
        if self.life.state in ("cold", "unloading"):
            self.leaving = self._unload_due = self._let_go = False
            self._wanted_s = None
        if not self.leaving or self.life.state != "warm":
            self._returned.set()
        if self.life is not before:
            same = self.life.state == before.state
            (self._progressed if same else self._changed)(self.name)
        if (self._unload_due or self._let_go) and not (self.life.in_flight or self.life.waiting):
            self.feed(life.Unload())
        return denied

    def progress(self, fraction: float | None) -> None:
        """The engine has loaded this part."""
        if fraction is not None:
            self.feed(life.Progress(self.life.run, fraction))

    def _grant(self, run: int, count: int) -> None:
        assert self.running is not None
        assert self.slots is not None
        for _ in range(count):
            waiter = self._waiters.popleft() if self._waiters else None
            if waiter is None or waiter.done():
                # It left in the same moment; the life counts it as granted, so it is given back.
                self.feed(life.RequestDone(run))
                continue
            lease = Lease(run, self.running, self.slots)
            self._leases.add(lease)
            waiter.set_result(lease)

    async def _park(self) -> None:
        """Wait while the engine is to go and has not gone."""
        self.parked += 1
        try:
            while self.leaving and self.life.state == "warm" and self._ended is None:
                self._returned.clear()
                await self._returned.wait()
        finally:
            self.parked -= 1

    def _tell_leases(self, run: int, fault: Fault) -> None:
        for lease in self._leases:
            if lease.run == run:
                lease.end(fault)
        if self.slots is not None:
            self.slots.end(fault)

    def _end_leases(self, run: int, fault: Fault) -> None:
        self._tell_leases(run, fault)
        self._leases = {lease for lease in self._leases if lease.run != run}

    async def _run_load(self, run: int) -> None:
        try:
            running = await self._start(self)
        except FaultError as error:
            _log.warning("%s did not load: %s", self.name, error.fault.sentence)
            self.feed(life.Failed(run, error.fault))
            return
        except Exception as error:
            _log.exception("%s did not load", self.name)
            fault = Fault("model_load_failed", f"{self.name} did not load ({error!r})", "see the log")
            self.feed(life.Failed(run, fault))
            return
        # From here on it is found by whoever wants it stopped, in whatever state the life is by now.
        self.running = running
        self._running_run = run
        self.started_at_ms = self._clock.wall_ms()
        self.slots = SlotQueue(self._slot_count(), self._queue_limit, lambda: self._progressed(self.name))
        if running.exited is not None:
            running.exited.add_done_callback(lambda reason: self._on_exit(run, reason))
        try:
            await self._started(self, running)
        except Exception:
            _log.exception("what %s uses was not kept", self.name)
        _log.info("%s is loaded", self.name)
        self.feed(life.Ready(run))

    def _on_exit(self, run: int, reason: asyncio.Future[str]) -> None:
        if self._closed or self.life.run != run or self.life.state not in ("loading", "warm"):
            return  # it was stopped
        fault = Fault(
            "engine_failed",
            f"the engine of {self.name} ended unexpectedly: {reason.result()}",
            "send the request again",
            retry_after=2,
        )
        _log.error("%s", fault.sentence)
        self.restarts += 1
        dead, self.running = self.running, None
        self.held_bytes = 0
        if dead is not None:
            self._keep(dead.engine.aclose(), f"close {self.name}")
        self.feed(life.Died(run, fault))

    async def _run_stop(self, run: int) -> None:
        if self._load is not None and self._load[0] == run:
            await cancel_and_wait(self._load[1])
        if self.running is not None and self._running_run == run:
            await self._stop_engine(self.running)
            _log.info("%s is unloaded", self.name)
        self.feed(life.Stopped(run))

    async def _stop_engine(self, running: RunningEngine) -> None:
        try:
            await running.stop()
        except Exception:
            _log.exception("the engine of %s did not stop as it should", self.name)
        self.running = None
        self.held_bytes = 0

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closed:
            return
        due = life.wake_at(self.life, self.keeps_s())
        if due is not None:
            delay = max(0.0, due - self._clock.mono())
            self._timer = asyncio.get_running_loop().call_later(delay, self.retime)

    def _keep(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = spawn(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _refuse(waiter: asyncio.Future[Lease], fault: Fault) -> None:
    if not waiter.done():
        waiter.set_exception(_error(fault))


def _error(fault: Fault) -> EnvError:
    return EnvError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
