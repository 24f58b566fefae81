"""The commands about models, carried out."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import (
    AddModel,
    DiscoverModels,
    FitModel,
    LoadModel,
    Outcome,
    PullModel,
    RemoveModel,
    SetModel,
    UnloadModel,
)
from relaydesk.core.errors import Fault, FaultError, LocalError
from relaydesk.core.ids import parse_model_name
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.ports import Clock
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.jobs import Job, JobBoard
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.pool.registry import EDITABLE, changed
from relaydesk.engine.pool.runner import ModelRunner
from relaydesk.engine.pull.add import look_at
from relaydesk.engine.pull.discover import discover
from relaydesk.engine.pull.pulled import Progress, PulledModel
from relaydesk.engine.pull.remove import remove_pulled
from relaydesk.engine.pull.service import PullService
from relaydesk.store.secrets import Secrets

_log: Final = logging.getLogger(__name__)


class ModelCommands:
    """Handlers for every command that is about a model."""

    def __init__(
        self,
        pool: Pool,
        pulls: PullService,
        jobs: JobBoard,
        secrets: Secrets,
        model_dir: Path,
        clock: Clock,
        environ: Mapping[str, str],
    ) -> None:
        self._pool = pool
        self._pulls = pulls
        self._jobs = jobs
        self._secrets = secrets
        self._model_dir = model_dir
        self._clock = clock
        self._environ = environ

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer all handlers."""
        dispatcher.on(AddModel, self.add)
        dispatcher.on(PullModel, self.pull)
        dispatcher.on(SetModel, self.set)
        dispatcher.on(RemoveModel, self.remove)
        dispatcher.on(LoadModel, self.load)
        dispatcher.on(UnloadModel, self.unload)
        dispatcher.on(FitModel, self.fit)
        dispatcher.on(DiscoverModels, self.discover)

    async def add(self, command: AddModel) -> Outcome:
        spec = msgspec.structs.replace(command.spec, owned=False, sha256="", url_key_secret="")
        if command.url_key and spec.kind != "url":
            raise LocalError(
                "invalid_request", "only a server's model has a key", "leave the key out", param="url_key"
            )
        if spec.kind != "url":
            found = await look_at(spec.path)
            self._refuse_twice(spec, str(found.path))
            spec = msgspec.structs.replace(
                spec,
                name=spec.name or self._free_name(found.suggested_name),
                path=str(found.path),
                size_bytes=found.size,
                projector=spec.projector or (str(found.projector) if found.projector else ""),
                source=spec.source or str(found.path),
            )
        elif not spec.name:
            raise LocalError("invalid_request", "a server's model needs a name", "give --name", param="name")
        if command.url_key:
            spec = msgspec.structs.replace(spec, url_key_secret=_secret_name(spec.name))
        entry = await self._pool.registry.add(spec)
        if command.url_key:
            try:
                await asyncio.to_thread(self._secrets.put, spec.url_key_secret, command.url_key)
            except FaultError:
                await self._pool.registry.remove(spec.name)
                raise
        return Outcome(ok=True, value=to_builtins(entry.spec))

    async def pull(self, command: PullModel) -> Outcome:
        # Whatever is wrong is said now, not after an hour's download.
        changed(ModelSpec(name="pulled", path="/pulled"), command.changes, _PULLABLE)
        if command.name:
            self._require_free(parse_model_name(command.name))

        async def work(job: Job) -> None:
            def tell(progress: Progress) -> None:
                job.progress(progress.done, progress.total, round(progress.rate), progress.stage)

            pulled = await self._pulls.pull(command.reference, on_progress=tell)
            await self._register_pulled(command, pulled, job)

        return Outcome(ok=True, job=self._jobs.start("pull", command.reference, work))

    async def _register_pulled(self, command: PullModel, pulled: PulledModel, job: Job) -> None:
        known = next(
            (
                entry.spec
                for entry in self._pool.registry.entries()
                if entry.spec.path == str(pulled.path) and command.name in ("", entry.spec.name)
            ),
            None,
        )
        if known is not None:
            if command.changes:
                await self._pool.registry.change(known.name, command.changes)
                self._pool.runner(known.name).retime()
            job.progress(pulled.size, pulled.size, 0, f"{known.name} is registered already")
            return
        spec = ModelSpec(
            name=command.name or self._free_name(pulled.suggested_name),
            path=str(pulled.path),
            projector=str(pulled.projector) if pulled.projector else "",
            owned=True,
            source=pulled.source,
            size_bytes=pulled.size,
            sha256=pulled.sha256,
        )
        try:
            entry = await self._pool.registry.add(changed(spec, command.changes, _PULLABLE))
        except FaultError as error:
            if error.fault.code == "bad_model_file":
                # What no engine can load is of no use to keep; a name that is taken is another matter.
                await asyncio.to_thread(self._delete_owned, spec)
            raise
        job.progress(pulled.size, pulled.size, 0, f"registered as {entry.spec.name}")

    async def set(self, command: SetModel) -> Outcome:
        old = self._pool.registry.entry(command.name).spec
        entry = await self._pool.registry.change(command.name, command.changes)
        runner = self._pool.runner(entry.spec.name)
        for each in self._pool.beside(entry.spec.name):
            each.retime()
        loaded = runner.life.state in ("warm", "loading")
        note = "it counts from the next load" if loaded and set(command.changes) - _AT_ONCE else ""
        return Outcome(
            ok=True, value={"spec": to_builtins(entry.spec), "old": to_builtins(old), "note": note}
        )

    async def remove(self, command: RemoveModel) -> Outcome:
        spec = self._pool.registry.entry(command.name).spec
        for runner in self._pool.beside(spec.name):
            if (denied := runner.unload(force=False)) is not None:
                raise _error(denied)
            await runner.settled()
        await self._pool.registry.remove(spec.name)
        # Nobody can ask for it by name any more; who asked in the last moment is refused.
        await self._pool.forget(spec.name)
        if spec.url_key_secret:
            await asyncio.to_thread(self._secrets.remove, spec.url_key_secret)
        deleted = await asyncio.to_thread(self._delete_owned, spec) if self._may_delete(spec) else []
        return Outcome(ok=True, value={"name": spec.name, "deleted": deleted})

    async def load(self, command: LoadModel) -> Outcome:
        name = self._pool.registry.entry(command.name).spec.name
        entry = await self._pool.registry.recheck(name)
        if (unfit := self._pool.unfit(entry)) is not None and not self._pool.is_warm(name):
            raise _error(unfit)

        async def work(job: Job) -> None:
            runner = self._pool.runner(name)
            try:
                await self._load(runner, job)
            except asyncio.CancelledError:
                # Refused where requests wait for it, and then it goes on for them.
                if runner.life.state == "loading":
                    runner.unload(force=False)
                raise

        return Outcome(ok=True, job=self._jobs.start("load", name, work))

    async def _load(self, runner: ModelRunner, job: Job) -> None:
        # An engine that is just being stopped is not the one that was asked for.
        await runner.settled()
        if (denied := runner.want(force=True)) is not None:
            raise _error(denied)
        while runner.life.state == "loading":
            job.progress(round(runner.life.progress * 1000), 1000)
            await asyncio.sleep(0.1)
        if runner.life.state != "warm":
            fault = runner.life.error or Fault("model_load_failed", f"{runner.name} did not stay loaded")
            raise _error(fault)
        job.progress(1000, 1000, 0, f"{runner.name} is loaded")

    async def unload(self, command: UnloadModel) -> Outcome:
        name = self._pool.registry.entry(command.name).spec.name
        notes = [await self._unload(runner) for runner in self._pool.beside(name)]
        note = next((each for each in (_IN_USE, _UNLOADED) if each in notes), "it was not loaded")
        return Outcome(ok=True, value={"name": name, "note": note})

    async def _unload(self, runner: ModelRunner) -> str:
        """Unload one engine, now or once it is idle, and say which; empty where it was not loaded."""
        if runner.life.state not in ("warm", "loading", "unavailable"):
            return ""
        if runner.unload(force=False) is None:
            await runner.settled()
            return _UNLOADED
        runner.unload_when_idle()
        return _IN_USE

    async def fit(self, command: FitModel) -> Outcome:
        report = self._pool.fit_report(self._pool.registry.entry(command.name))
        return Outcome(ok=True, value=to_builtins(report))

    async def discover(self, _command: DiscoverModels) -> Outcome:
        home = Path(self._environ.get("HOME", "/"))
        known = {entry.spec.path for entry in self._pool.registry.entries()}
        found = await discover(self._environ, home, self._clock)
        rows: list[dict[str, Any]] = [
            {
                "name": each.name,
                "path": str(each.path),
                "size_bytes": each.size,
                "source": each.source,
                "projector": str(each.projector) if each.projector else None,
                "registered": str(each.path) in known,
            }
            for each in found
        ]
        return Outcome(ok=True, value=rows)

    def _refuse_twice(self, spec: ModelSpec, path: str) -> None:
        """A file is registered a second time only under a name that was asked for."""
        for entry in self._pool.registry.entries():
            if not spec.name and entry.spec.path == path:
                raise LocalError(
                    "conflict",
                    f"the file is registered already as {entry.spec.name}",
                    "give --name to register it once more, with other settings",
                    param="path",
                )

    def _free_name(self, wanted: str) -> str:
        taken = {each for name in self._pool.registry.names() for each in (name.name, *name.aliases)}
        name, number = wanted, 2
        while name in taken:
            name, number = f"{wanted}-{number}", number + 1
        return name

    def _require_free(self, name: str) -> None:
        if any(name in (each.name, *each.aliases) for each in self._pool.registry.names()):
            raise LocalError(
                "conflict", f"the name {name} is taken", "choose another with --name", param="name"
            )

    def _may_delete(self, spec: ModelSpec) -> bool:
        """Only a file we wrote, in the folder we write to, that no other model uses."""
        if not spec.owned or self._model_dir.resolve() not in Path(spec.path).resolve().parents:
            return False
        return spec.path not in self._used()

    def _used(self) -> frozenset[str]:
        """Every file that a registered model needs."""
        specs = [entry.spec for entry in self._pool.registry.entries()]
        return frozenset(path for spec in specs for path in (spec.path, spec.projector, spec.draft))

    def _delete_owned(self, spec: ModelSpec) -> list[str]:
        files = [Path(spec.path)]
        shared = spec.projector in self._used()
        projector = Path(spec.projector) if spec.projector and not shared else None
        if projector is not None and self._model_dir.resolve() in projector.resolve().parents:
            files.append(projector)
        return [str(path) for path in remove_pulled(self._model_dir, *files)]


_UNLOADED: Final = "unloaded"
_IN_USE: Final = "it is in use: unloaded when its requests end"
# What may be set of a model whose file the pull itself decides.
_PULLABLE: Final = EDITABLE - {"kind", "path", "url", "url_model"}
# What a loaded engine does not need to be restarted for.
_AT_ONCE: Final = frozenset(
    {"aliases", "keep_alive_s", "preload", "host_only", "offer", "input_rate", "output_rate"}
)


def _secret_name(model: str) -> str:
    """Where a server's key is kept: a model's name may hold what a file's name may not."""
    return "url_" + hashlib.sha256(model.encode()).hexdigest()[:24]


def _error(fault: Fault) -> LocalError:
    return LocalError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)
