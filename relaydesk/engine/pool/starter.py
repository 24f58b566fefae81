"""Starting the engine a model asks for: a worker of our own, or a door to somebody else's server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from relaydesk.core.errors import EnvError, PeerError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.setup import WRITES, EngineSetup
from relaydesk.core.ports import Clock, Rng
from relaydesk.engine.infer.client import EngineClient
from relaydesk.engine.infer.engine import Engine
from relaydesk.engine.infer.memory import process_memory
from relaydesk.engine.infer.spec import EngineReady, EngineSpec
from relaydesk.engine.infer.url_engine import UrlEngine
from relaydesk.engine.infer.worker import WorkerExit, WorkerProcess

# What a request carries may be large; what an engine says before it is ready is not.
_TEMPLATE_LIMIT: Final = 1 << 20


@dataclass(slots=True)
class RunningEngine:
    """An engine that answers. ``exited`` gets the reason when it ends by itself; None for a far server.

    ``url`` is for people: a worker's private socket or a server's address. ``extensions`` says that it
    takes llama.cpp's own fields beside OpenAI's.
    """

    engine: Engine
    alias: str
    pid: int
    url: str
    extensions: bool
    exited: asyncio.Future[str] | None
    ready: EngineReady | None
    worker: WorkerProcess | None

    async def stop(self, grace_s: float = 5.0) -> None:
        """End it; returns when no process of it is left."""
        await self.engine.aclose()
        if self.worker is not None:
            await self.worker.stop(grace_s)

    def kill(self) -> None:
        """End it now, without waiting."""
        if self.worker is not None:
            self.worker.kill()

    async def memory_mb(self) -> int:
        """Resident memory of its process in MB, 0 where there is none here."""
        if self.pid == 0:
            return 0
        return (await asyncio.to_thread(process_memory, self.pid)).rss // 1_048_576


class Starter(Protocol):
    """Starts engines."""

    async def start(
        self,
        spec: ModelSpec,
        ctx: int,
        timeout_s: float,
        on_progress: Callable[[float | None], None],
        setup: EngineSetup = WRITES,
    ) -> RunningEngine:
        """Start an engine for ``spec`` with ``ctx`` tokens a request, and wait until it answers.

        Raises `EnvError` or `PeerError` with the useful reason; then nothing is left running.
        """
        ...


class EngineStarter:
    """`Starter` for every engine kind of `ModelSpec`. ``secret`` reads a stored secret by name."""

    def __init__(
        self,
        runtime_dir: Path,
        threads: int,
        rng: Rng,
        clock: Clock,
        secret: Callable[[str], str | None],
        *,
        metrics: bool = False,
    ) -> None:
        self._runtime_dir = runtime_dir
        self._threads = threads
        self._rng = rng
        self._clock = clock
        self._secret = secret
        self._metrics = metrics

    async def start(
        self,
        spec: ModelSpec,
        ctx: int,
        timeout_s: float,
        on_progress: Callable[[float | None], None],
        setup: EngineSetup = WRITES,
    ) -> RunningEngine:
        if spec.kind == "url":
            return await self._connect(spec, timeout_s)
        return await self._spawn(spec, ctx, timeout_s, on_progress, setup)

    async def _spawn(
        self,
        spec: ModelSpec,
        ctx: int,
        timeout_s: float,
        on_progress: Callable[[float | None], None],
        setup: EngineSetup,
    ) -> RunningEngine:
        orders = EngineSpec(
            model_path=spec.path,
            alias=spec.name,
            ctx_total=ctx * spec.slots,
            slots=spec.slots,
            threads=self._threads,
            setup=setup,
            kv_k=spec.kv_k,
            kv_v=spec.kv_v,
            template=await asyncio.to_thread(_template_text, spec.template),
            projector=spec.projector,
            draft=spec.draft,
            gpu_layers=spec.gpu_layers,
            metrics=self._metrics,
        )
        worker = WorkerProcess(orders, self._runtime_dir, self._rng, self._clock)
        ready = await worker.start(timeout_s, lambda progress: on_progress(progress.fraction))
        loop = asyncio.get_running_loop()
        exited: asyncio.Future[str] = loop.create_future()

        def tell(ended: asyncio.Future[WorkerExit]) -> None:
            if not exited.done():
                exited.set_result(ended.result().reason)

        worker.exited.add_done_callback(tell)
        client = EngineClient(worker.socket_path, worker.key, self._clock)
        url = f"unix:{worker.socket_path}"
        return RunningEngine(client, spec.name, ready.pid, url, True, exited, ready, worker)

    async def _connect(self, spec: ModelSpec, timeout_s: float) -> RunningEngine:
        key = await asyncio.to_thread(self._secret, spec.url_key_secret) if spec.url_key_secret else None
        engine = UrlEngine(spec.url, key or "")
        try:
            async with asyncio.timeout(min(timeout_s, 30.0)):
                answers = await engine.health()
        except TimeoutError:
            answers = False
        except BaseException:
            await engine.aclose()
            raise
        if not answers:
            await engine.aclose()
            raise PeerError(
                "model_load_failed",
                f"the server of {spec.name} at {spec.url} does not answer",
                "start it, or correct the address with `relaydesk model set NAME url=…`",
            )
        return RunningEngine(engine, spec.url_model or spec.name, 0, spec.url, False, None, None, None)


def _template_text(path: str) -> str:
    """A chat template's text; a path names a Jinja file."""
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_TEMPLATE_LIMIT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise EnvError(
            "model_load_failed", f"the chat template {path} cannot be read ({error})", "correct the path"
        ) from error
    if len(text) > _TEMPLATE_LIMIT:
        raise EnvError("model_load_failed", f"the chat template {path} is larger than 1 MiB")
    return text
