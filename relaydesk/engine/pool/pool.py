"""The pool of this machine: which models are loaded, who may use them, and who makes room for whom.

Loads run one after another, so that two of them never count on the same memory. A model that fits only
after idle ones are unloaded unloads the longest unused; one that needs the room of a model in use waits
until that one falls idle, and until then the one in use takes no new requests, so that nobody waits for
ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from relaydesk.core.errors import EnvError, Fault, LocalError, PeerError
from relaydesk.core.events import ModelChanged, ModelProgress, WorkerChanged
from relaydesk.core.pool.eviction import LoadedModel
from relaydesk.core.pool.fit import FitReport, fit
from relaydesk.core.pool.memory import HostMemory
from relaydesk.core.pool.need import Measured, Standing, effective_ctx, stand
from relaydesk.core.pool.placement import Room, refusal
from relaydesk.core.pool.setup import EMBEDDER
from relaydesk.core.ports import Clock
from relaydesk.engine.bus import Bus
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.pool.host_memory import HostMemoryProbe
from relaydesk.engine.pool.lease import Lease
from relaydesk.engine.pool.limits import Limits
from relaydesk.engine.pool.registry import Entry, Registry
from relaydesk.engine.pool.runner import ModelRunner
from relaydesk.engine.pool.slot_queue import SlotQueue
from relaydesk.engine.pool.starter import RunningEngine, Starter

_log: Final = logging.getLogger(__name__)

# The seed: a request waits a minute longer than the load itself may take, so that the load's own error,
# which says more, comes first.
HEADROOM_S: Final = 60.0
# Memory of an engine that has ended comes back late on GPUs.
_GPU_RETURN_S: Final = 5.0


class Pool:
    """All models of this node at run time."""

    def __init__(
        self,
        registry: Registry,
        starter: Starter,
        pretend_mib: int | None,
        limits: Callable[[], Limits],
        clock: Clock,
        bus: Bus,
    ) -> None:
        self.registry = registry
        self.memory = HostMemoryProbe(pretend_mib, self.held_bytes)
        self._starter = starter
        self._limits = limits
        self._clock = clock
        self._bus = bus
        self._runners: dict[str, ModelRunner] = {}
        self._load_turn = asyncio.Lock()
        self._moved = asyncio.Event()
        self._stopped: Fault | None = None
        # Requests whose model is not loaded, by its name.
        self._waiting: dict[str, set[RequestRecord]] = {}

    def runner(self, name: str) -> ModelRunner:
        """The runner of a registered model, made when first asked for."""
        found = self._runners.get(name)
        if found is None:
            found = self._runners[name] = ModelRunner(
                name,
                self._clock,
                self._load,
                self._measure,
                keep_alive_s=lambda: self.keep_alive_s(name),
                queue_limit=lambda: self._limits().queue,
                slots=lambda: self.registry.entry(name).spec.slots,
                changed=self._on_changed,
                progressed=self._on_progressed,
            )
        return found

    def runners(self) -> tuple[ModelRunner, ...]:
        """Every runner there is."""
        return tuple(self._runners.values())

    def is_warm(self, name: str) -> bool:
        """Whether a request would be answered without a load."""
        runner = self._runners.get(name)
        return runner is not None and runner.life.state == "warm" and not runner.leaving

    def held_bytes(self) -> int:
        """What loaded and loading models hold, in bytes."""
        held = sum(runner.held_bytes for runner in self._runners.values())
        return held - sum(self._shared(name) for name in self._runners if name.endswith(EMBEDDER))

    def beside(self, name: str) -> tuple[ModelRunner, ...]:
        """A model's runners, as far as there are any: its own, and that of its embedder."""
        found = (self._runners.get(name), self._runners.get(name + EMBEDDER))
        return tuple(runner for runner in found if runner is not None)

    def held_by(self, name: str) -> int:
        """What one model holds in all, in bytes."""
        return sum(runner.held_bytes for runner in self.beside(name)) - self._shared(name)

    def _shared(self, name: str) -> int:
        """Bytes that this engine and the other one of its model both count: the weights, mapped once."""
        return min(_weights(self._runners.get(name)), _weights(self._runners.get(_other(name))))

    def standing(self, entry: Entry, memory: HostMemory | None = None) -> Standing | None:
        """The model against this machine; None where it needs nothing here or its file is unusable.

        What the model itself holds counts as free: it would be loaded in its own place.
        """
        if entry.subject is None:
            return None
        return stand(entry.subject, self._memory_for(entry, memory), self._loaded(but=entry.spec.name))

    def fit_report(self, entry: Entry) -> FitReport:
        """The full report of `relaydesk model fit`. Raises `FaultError` where there is nothing to judge."""
        if entry.subject is None:
            if entry.fault is not None:
                raise _error(entry.fault)
            raise LocalError(
                "invalid_request",
                f"{entry.spec.name} is another server's model: it needs no memory here",
                "ask that server",
            )
        subject = entry.subject
        return fit(
            entry.spec,
            subject.header,
            self._memory_for(entry),
            loaded=self._loaded(but=entry.spec.name),
            projector=subject.projector,
            draft=subject.draft,
            measured=subject.measured,
        )

    def check(self, name: str) -> None:
        """Refuse a request for a model that cannot be had, before anything is waited for.

        Raises `EnvError` ``model_unavailable`` with the seed's bodies, or the last load's own error.
        """
        if self._stopped is not None:
            raise _error(self._stopped)
        life = self.runner(name).life
        if life.state in ("warm", "loading") or (life.state == "unavailable" and life.restarting):
            return
        if life.state == "unavailable" and life.error is not None and self._clock.mono() < life.retry_at:
            wait = max(1, round(life.retry_at - self._clock.mono()))
            raise EnvError(life.error.code, life.error.message, life.error.hint, retry_after=wait)
        fault = self.unfit(self.registry.entry(name))
        if fault is not None:
            raise _error(fault)

    def unfit(self, entry: Entry, memory: HostMemory | None = None) -> Fault | None:
        """Why the model could not be loaded now even by waiting, or None."""
        return self.refused(entry, self.standing(entry, memory))

    def refused(self, entry: Entry, standing: Standing | None) -> Fault | None:
        """`unfit` for a standing that is known already."""
        if entry.fault is not None:
            return Fault("model_unavailable", entry.fault.message, entry.fault.hint)
        if standing is None or standing.decision.verdict in ("load", "evict", "wait"):
            return None
        room = Room(host_free=standing.free, pool_total=standing.total)
        return refusal(entry.spec.name, standing.need.bytes, room, host_only=entry.spec.host_only)

    def _memory_for(self, entry: Entry, memory: HostMemory | None = None) -> HostMemory:
        runner = self._runners.get(entry.spec.name)
        if runner is not None and runner.held_bytes:
            return self.memory.read(without=runner.held_bytes)
        memory = memory or self.memory.read()
        mapped = _weights(self._runners.get(_other(entry.spec.name)))
        # On GPUs each engine has weights of its own.
        return self.memory.read(without=mapped) if mapped and not memory.gpus else memory

    @asynccontextmanager
    async def lease(
        self, name: str, record: RequestRecord, keep_alive_s: int | None = None
    ) -> AsyncIterator[Lease]:
        """Hold the model's engine, loading it first where it is cold. Raises `FaultError`.

        ``keep_alive_s`` is how long the client wants the model kept afterwards, None where it did not say.
        """
        if self._stopped is not None:
            raise _error(self._stopped)
        runner = self.runner(name)
        lease = runner.acquire_now() or await self._acquire(runner, record)
        record.loaded()
        try:
            yield lease
        finally:
            runner.release(lease, keep_alive_s)

    @asynccontextmanager
    async def lease_warm(self, name: str, record: RequestRecord) -> AsyncIterator[Lease]:
        """Hold the engine of a model that is loaded: for strangers, who never cause a load.

        Raises `PeerError` ``model_unloaded`` where it is not, or is about to go.
        """
        runner = self._runners.get(name)
        lease = None if self._stopped is not None or runner is None else runner.acquire_now()
        if runner is None or lease is None:
            raise PeerError("model_unloaded", f"{name} is not loaded", "try another node", retry_after=2)
        record.loaded()
        try:
            yield lease
        finally:
            runner.release(lease)

    def slots(self, name: str) -> SlotQueue | None:
        """The slots of a model that is loaded and stays; None for any other."""
        return self._runners[name].slots if self.is_warm(name) else None

    async def _acquire(self, runner: ModelRunner, record: RequestRecord) -> Lease:
        if runner.load_begun:
            record.loading()
        self._waiting.setdefault(runner.name, set()).add(record)
        limit = self._limits().load_timeout_s + HEADROOM_S
        try:
            async with asyncio.timeout(limit):
                lease = await runner.acquire()
        except TimeoutError:
            raise EnvError(
                "model_load_timeout",
                f"{runner.name} was not loaded within {limit:.0f} s",
                "see `relaydesk model list`, or raise RELAY_LOAD_TIMEOUT",
                retry_after=30,
            ) from None
        finally:
            self._waiting[runner.name].discard(record)
        return lease

    async def let_go(self, name: str) -> None:
        """A client needs the model no longer: unload it now, or once the requests it answers have ended.

        Raises `EnvError` ``refused`` where the operator keeps it loaded for ever.
        """
        if self.keep_alive_s(name) < 0:
            raise EnvError(
                "refused",
                f"{name} stays loaded: so the operator has set it",
                "`relaydesk model unload` on the hub unloads it",
            )
        for runner in self.beside(name):
            runner.let_go()
            await runner.settled()

    async def forget(self, name: str) -> None:
        """Drop the runners of a model that was removed, with whatever they do."""
        for runner in self.beside(name):
            await runner.close(Fault("model_not_found", f"the model {name} was removed", param="model"))
            if self._runners.get(runner.name) is runner:
                del self._runners[runner.name]

    def retime(self) -> None:
        """Settings have changed: models may have been idle for long enough."""
        for runner in self.runners():
            runner.retime()

    def refuse_all(self, fault: Fault) -> None:
        """The node stops: waiting requests are refused, running answers end with ``fault``."""
        self._stopped = fault
        for runner in self.runners():
            runner.fail_waiters(fault)

    async def close(self) -> None:
        """End every engine. Nothing of ours is left running afterwards."""
        await asyncio.gather(*(runner.close() for runner in self.runners()))

    async def _load(self, runner: ModelRunner) -> RunningEngine:
        """Make room and start the engine; what it holds is counted from before it starts."""
        async with self._load_turn:
            entry = runner.entry = await self.registry.reread(runner.name)
            if entry.fault is not None:
                raise EnvError("model_load_failed", entry.fault.message, entry.fault.hint)
            if entry.subject is not None:
                runner.held_bytes = await self._make_room(runner, entry)
            runner.load_begun = True
            for record in self._waiting.get(runner.name, ()):
                record.loading()
            limit = self._limits().load_timeout_s
            try:
                return await self._starter.start(
                    entry.spec, self.context(entry), limit, runner.progress, entry.setup
                )
            except BaseException:
                runner.held_bytes = 0
                raise
            finally:
                runner.load_begun = False

    def context(self, entry: Entry) -> int:
        """What one request can use, in tokens; 0 where only a far server knows."""
        if entry.header is None:
            return entry.spec.ctx
        return effective_ctx(entry.header, entry.spec)

    async def _make_room(self, runner: ModelRunner, entry: Entry) -> int:
        """Unload what has to go, waiting for models in use, and return the bytes needed.

        Raises `EnvError` ``model_unavailable`` where it cannot fit, or did not within the load time-out.
        """
        deadline = self._clock.mono() + self._limits().load_timeout_s
        gpu_deadline = 0.0
        asked: set[str] = set()
        try:
            while True:
                self._moved.clear()
                standing = self.standing(entry)
                assert standing is not None
                match standing.decision.verdict:
                    case "load":
                        return standing.need.bytes
                    case "evict":
                        for victim in standing.decision.victims:
                            _log.info("%s is unloaded to make room for %s", victim, runner.name)
                            if (found := self._runners.get(victim)) is not None:
                                await found.evict()
                        gpu_deadline = self._clock.mono() + _GPU_RETURN_S
                        continue
                    case "wait" if self._clock.mono() < deadline:
                        self._ask_to_leave(runner.name, standing, asked)
                    case "blocked" if self._clock.mono() < gpu_deadline:
                        pass
                    case _:
                        room = Room(host_free=standing.free, pool_total=standing.total)
                        raise _error(
                            refusal(
                                entry.spec.name,
                                standing.need.bytes,
                                room,
                                host_only=entry.spec.host_only,
                            )
                        )
                try:
                    async with asyncio.timeout(0.5):
                        await self._moved.wait()
                except TimeoutError:
                    pass
        finally:
            for name in asked:
                if name in self._runners:
                    self._runners[name].stay()

    def _ask_to_leave(self, name: str, standing: Standing, asked: set[str]) -> None:
        """Let models in use take no new requests: the longest unused first, as many as are needed."""
        missing = standing.need.bytes - standing.free
        missing -= sum(each.held_bytes for each in self._runners.values() if each.life.state == "unloading")
        for model in sorted(self._loaded(but=name), key=lambda each: each.last_used):
            if missing <= 0:
                return
            runner = self._runners[model.name]
            if not model.pinned and runner.life.state == "warm":
                missing -= model.bytes
                asked.add(model.name)
                runner.leaving = True

    async def _measure(self, runner: ModelRunner, running: RunningEngine) -> None:
        """Keep what the load used, for the next time."""
        ready, entry = running.ready, runner.entry
        if ready is None or not ready.weights_bytes or entry is None:
            return
        gpus = len({each.device for each in ready.buffers if not each.device.startswith("CPU")})
        peak = sum((ready.weights_bytes, ready.kv_bytes, ready.compute_bytes)) if gpus else ready.rss_bytes
        measured = Measured(
            ctx=self.context(entry),
            slots=entry.spec.slots,
            kv_k=entry.spec.kv_k,
            kv_v=entry.spec.kv_v,
            gpus=gpus,
            weights=ready.weights_bytes,
            kv=ready.kv_bytes,
            compute=ready.compute_bytes,
            peak=peak,
        )
        await self.registry.measure(entry, measured)

    def _loaded(self, but: str) -> list[LoadedModel]:
        """What holds memory. A model that is being loaded or unloaded counts as in use: it cannot be unloaded
        now, and waiting for it helps.
        """
        found = []
        for runner in self._runners.values():
            state = runner.life.state
            if runner.name == but or (state != "warm" and not runner.held_bytes):
                continue
            found.append(
                LoadedModel(
                    name=runner.name,
                    bytes=runner.held_bytes - self._stays(runner, but),
                    last_used=runner.life.last_used,
                    in_flight=runner.life.in_flight + (state != "warm"),
                    pinned=state != "unloading" and self.keep_alive_s(runner.name) < 0,
                )
            )
        return found

    def _stays(self, runner: ModelRunner, but: str) -> int:
        """Bytes that unloading this engine does not give back: weights that the model's other one maps too.

        Of two that are loaded the one used last gives them back. One that is to be loaded needs them anyway.
        """
        other = _other(runner.name)
        if other == but:
            return _weights(runner)
        beside = self._runners.get(other)
        first = beside is not None and runner.life.last_used <= beside.life.last_used
        return self._shared(runner.name) if first else 0

    def keep_alive_s(self, name: str) -> int:
        """How long the model stays loaded when idle: its own setting, else the node's; -1 for ever."""
        try:
            own = self.registry.entry(name).spec.keep_alive_s
        except LocalError:
            return 0
        return self._limits().keep_alive_s if own is None else own

    def _on_changed(self, name: str) -> None:
        self._moved.set()
        self._bus.publish(ModelChanged(name))
        self._bus.publish(WorkerChanged(name))

    def _on_progressed(self, name: str) -> None:
        self._moved.set()
        self._bus.publish(ModelProgress(name))


def _other(name: str) -> str:
    """A model's embedder, or the model that this is the embedder of."""
    return name.removesuffix(EMBEDDER) if name.endswith(EMBEDDER) else name + EMBEDDER


def _weights(runner: ModelRunner | None) -> int:
    """The weights among the bytes that a runner counts as held."""
    if runner is None or not runner.held_bytes or runner.entry is None or runner.entry.header is None:
        return 0
    return runner.entry.header.tensor_bytes


def _error(fault: Fault) -> EnvError:
    return EnvError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
