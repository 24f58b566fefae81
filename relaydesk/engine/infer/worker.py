"""A worker: one engine in a process of its own, from start to its last line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from relaydesk.core.errors import EnvError, FaultError
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.text import SafeText, safe_text
from relaydesk.engine.infer.environment import worker_environment
from relaydesk.engine.infer.loadcause import explain_failure, ran_out_of_memory
from relaydesk.engine.infer.logfilter import LogEvent, LogFilter
from relaydesk.engine.infer.logpump import LogPump
from relaydesk.engine.infer.memory import file_backed, process_memory
from relaydesk.engine.infer.rundir import forget_worker, private_directory, record_worker, socket_path
from relaydesk.engine.infer.spec import (
    EngineBuffer,
    EngineOrder,
    EngineReady,
    EngineSpec,
    LoadProgress,
    LoadStage,
)
from relaydesk.engine.tasks import spawn

WorkerState = Literal["new", "loading", "ready", "stopping", "exited"]

MODULE: Final = "relaydesk.engine.infer.child.main"
_POLL_S: Final = 0.2
_GONE_S: Final = 5.0
_FIGURES_WAIT_S: Final = 0.3
_BUFFERS: Final = 128  # a few a device, for model, projector and draft
_LESS: Final = "a smaller context or fewer slots need less"


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """How a worker ended. ``code`` is negative for a signal; ``wanted`` says we asked for it."""

    pid: int
    code: int
    wanted: bool
    lines: tuple[SafeText, ...]

    @property
    def reason(self) -> str:
        """One clause for people."""
        if self.code >= 0:
            return f"it exited with code {self.code}"
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = str(-self.code)
        if -self.code == signal.SIGKILL:
            return "it was killed (SIGKILL; short of memory, the system does that)"
        if ran_out_of_memory(self.lines):
            return f"it ran out of memory ({name}): {_LESS}"
        return f"it was ended by {name}"


class _Status(msgspec.Struct):
    event: str
    message: str = ""


class WorkerProcess:
    """One engine process. Make it inside the loop, `start` it once, `stop` it or wait for `exited`.

    ``key`` opens its door and goes to it through a pipe only. The socket lies in ``runtime_dir``, which is
    made private.
    """

    def __init__(
        self, spec: EngineSpec, runtime_dir: Path, rng: Rng, clock: Clock, python: str = sys.executable
    ) -> None:
        self.spec = _absolute(spec)
        self.state: WorkerState = "new"
        self.key = rng.token_bytes(32).hex()
        self.name = rng.token_bytes(4).hex()
        self.socket_path = ""
        self.pid = 0
        self.ready: EngineReady | None = None
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[WorkerExit] = loop.create_future()
        self._runtime_dir = runtime_dir
        self._clock = clock
        self._python = python
        self._process: asyncio.subprocess.Process | None = None
        self._pump: LogPump | None = None
        self._filter = LogFilter(spec)
        self._verdict: asyncio.Future[_Status] = loop.create_future()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._stage: LoadStage = "starting"
        self._buffers: list[EngineBuffer] = []
        self._slots = (spec.slots, spec.ctx_total // spec.slots)
        self._slots_told = False

    @property
    def lines(self) -> tuple[SafeText, ...]:
        """The last kept lines of its log."""
        return tuple(self._pump.lines) if self._pump is not None else ()

    async def start(
        self, timeout_s: float, on_progress: Callable[[LoadProgress], None] | None = None
    ) -> EngineReady:
        """Start the process and wait until the model is loaded.

        Raises `EnvError`: ``model_load_failed`` with the engine's reason, ``model_load_timeout`` after
        ``timeout_s``, ``storage_failed`` or ``bad_setting`` for the runtime directory. After any of these,
        and after a cancellation, no process is left.
        """
        started = self._clock.mono()
        self.state = "loading"
        try:
            await self._launch()
            async with asyncio.timeout(timeout_s):
                status = await self._loaded(on_progress)
            if status.event != "ready":
                raise self._failure(status.message)
            load_s = self._clock.mono() - started
            await self._last_figures()
            self._filter.serving = True
            self.ready = await self._measure(load_s)
            self.state = "ready"
        except BaseException as error:
            await self._abandon()
            if isinstance(error, TimeoutError):
                raise EnvError(
                    "model_load_timeout",
                    f"model {self.spec.alias} did not load within {timeout_s:g} s",
                    "raise RELAY_LOAD_TIMEOUT, or choose a smaller model",
                ) from None
            raise
        return self.ready

    async def stop(self, grace_s: float = 5.0) -> None:
        """Ask it to end, and after ``grace_s`` make it. Returns when it is gone."""
        if self._process is None or self.exited.done():
            return
        self.state = "stopping"
        self._signal(signal.SIGTERM)
        await asyncio.wait([self.exited], timeout=grace_s)
        self.kill()
        await asyncio.wait([self.exited], timeout=_GONE_S)

    def kill(self) -> None:
        """End it now. `exited` tells when it is gone."""
        if not self.exited.done() and self._process is not None:
            self.state = "stopping"
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """To its whole session: on some systems a guard process belongs to it."""
        assert self._process is not None
        if self._process.returncode is not None:
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass  # it ended by itself meanwhile

    async def _launch(self) -> None:
        directory = await asyncio.to_thread(private_directory, self._runtime_dir)
        self.socket_path = socket_path(directory, self.name)
        read_end, write_end = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                self._python,
                "-P",  # the current directory is no place to import from
                "-m",
                MODULE,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=write_end,
                cwd="/",
                env=worker_environment(os.environ),
                start_new_session=True,  # a terminal's ^C is for the node, which drains first
            )
        except OSError as error:
            os.close(read_end)
            raise EnvError(
                "model_load_failed", f"the worker process cannot be started ({error.strerror})", "see doctor"
            ) from error
        finally:
            os.close(write_end)
        self.pid = self._process.pid
        self._pump = LogPump(read_end, self._filter, self._note)
        self._tasks = (
            spawn(self._watch_exit(self._process), name=f"worker-exit-{self.pid}"),
            spawn(self._watch_status(self._process), name=f"worker-status-{self.pid}"),
        )
        await self._send_order(self._process)

    async def _send_order(self, process: asyncio.subprocess.Process) -> None:
        order = EngineOrder(spec=self.spec, key=self.key, socket=self.socket_path, parent=os.getpid())
        assert process.stdin is not None
        try:
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it died at once; its exit says more

    async def _loaded(self, on_progress: Callable[[LoadProgress], None] | None) -> _Status:
        """Wait for the worker's verdict or its end, telling progress meanwhile."""
        size = max(1, await asyncio.to_thread(_size, self.spec.model_path))
        told: LoadProgress | None = None
        ends: list[asyncio.Future[Any]] = [self._verdict, self.exited]
        while True:
            done, _ = await asyncio.wait(ends, timeout=_POLL_S, return_when=asyncio.FIRST_COMPLETED)
            if self._verdict in done:
                status = self._verdict.result()
                if status.event != "ready":
                    await asyncio.wait([self.exited], timeout=_GONE_S)  # its last lines come with its end
                return status
            if done:
                return _Status("failed")
            if on_progress is not None:
                fraction = min(0.99, file_backed(self.pid) / size) if sys.platform == "linux" else None
                progress = LoadProgress(self._stage, fraction if self._stage != "starting" else None)
                if progress != told:
                    on_progress(progress)
                    told = progress

    async def _last_figures(self) -> None:
        """The log comes by another pipe, in turns: its figures may be a moment behind the verdict."""
        for _ in range(10):
            if self._slots_told:
                return
            await asyncio.sleep(_FIGURES_WAIT_S / 10)

    def _failure(self, said: str) -> FaultError:
        cause = explain_failure(self.lines)
        reason = cause.reason if cause is not None else said
        if not reason and self.exited.done():
            reason = self.exited.result().reason
        return EnvError(
            "model_load_failed",
            f"model {self.spec.alias} did not load because {safe_text(reason)}",
            cause.hint if cause is not None else "see what doctor says about the engine",
        )

    async def _measure(self, load_s: float) -> EngineReady:
        memory = await asyncio.to_thread(process_memory, self.pid)

        def total(kind: str) -> int:
            return sum(buffer.size_bytes for buffer in self._buffers if buffer.kind == kind)

        return EngineReady(
            pid=self.pid,
            slots=self._slots[0],
            ctx_slot=self._slots[1],
            load_s=load_s,
            weights_bytes=total("model"),
            kv_bytes=total("kv"),
            compute_bytes=total("compute") + total("output"),
            rss_bytes=memory.rss,
            pss_bytes=memory.pss,
            buffers=tuple(self._buffers),
        )

    async def _abandon(self) -> None:
        self.kill()
        if self._process is not None:
            await asyncio.wait([self.exited], timeout=_GONE_S)
        else:
            self.state = "exited"

    def _note(self, event: LogEvent) -> None:
        if event.buffer is not None:
            if len(self._buffers) < _BUFFERS:
                self._buffers.append(event.buffer)
        elif event.slots:
            self._slots = (event.slots, event.ctx_slot)
            self._slots_told = True
        elif event.stage is not None:
            self._stage = event.stage

    async def _watch_status(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                continue  # too long to be ours; the reader has dropped it
            if not line:
                return
            try:
                status = msgspec.json.decode(line, type=_Status)
            except msgspec.MsgspecError:
                continue
            if status.event in ("ready", "failed") and not self._verdict.done():
                self._verdict.set_result(status)

    async def _watch_exit(self, process: asyncio.subprocess.Process) -> None:
        await asyncio.to_thread(record_worker, self._runtime_dir, self.name, self.pid)
        code = await process.wait()
        wanted = self.state == "stopping"
        if self._pump is not None:
            self._pump.finish()
        if process.stdin is not None:
            process.stdin.close()
        self.state = "exited"
        await asyncio.to_thread(forget_worker, self._runtime_dir, self.name)
        if not self.exited.done():
            self.exited.set_result(WorkerExit(self.pid, code, wanted, self.lines))


def _absolute(spec: EngineSpec) -> EngineSpec:
    """The worker runs in another directory."""
    paths = {
        name: os.path.abspath(path)
        for name in ("model_path", "projector", "draft")
        if (path := getattr(spec, name))
    }
    return msgspec.structs.replace(spec, **paths)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
