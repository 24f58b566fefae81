"""The models this node knows: their specifications, what their files say, and what they were measured to use.

Everything is in memory once opened; writes go to the store first. A model whose file is gone or damaged
stays registered, with the reason.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from relaydesk.core.errors import Fault, FaultError, LocalError
from relaydesk.core.events import ModelChanged
from relaydesk.core.gateway.models import ModelName, find_model
from relaydesk.core.gateway.work import Capabilities
from relaydesk.core.ids import parse_model_name
from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.model import MOST_RATE, ModelSpec
from relaydesk.core.pool.need import Measured, Subject, effective_ctx, estimate
from relaydesk.core.pool.setup import (
    EMBEDDER,
    WRITES,
    EngineSetup,
    can_embed,
    can_write,
    embedder_spec,
    is_embedding_model,
)
from relaydesk.core.ports import Clock
from relaydesk.core.text import safe_text
from relaydesk.engine.bus import Bus
from relaydesk.engine.infer.url_engine import parse_engine_url
from relaydesk.engine.pool.headers import read_headers
from relaydesk.store import measured as stored
from relaydesk.store.models import ModelsRepo

# What an operator may change; the rest is ours to keep.
_OURS = {"name", "owned", "size_bytes", "sha256", "added_ms", "source", "url_key_secret"}
# A template of the operator's own is a file, read when the model is loaded: what one may have at most in use.
_OWN_TEMPLATE: Final = 32 * 1024
EDITABLE = frozenset(ModelSpec.__struct_fields__) - _OURS


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered model. ``subject`` is None and ``fault`` says why where its file cannot be used."""

    spec: ModelSpec
    subject: Subject | None
    fault: Fault | None = None

    @property
    def header(self) -> GgufHeader | None:
        """What the file says; None for a far server or an unusable file."""
        return self.subject.header if self.subject is not None else None

    @property
    def setup(self) -> EngineSetup:
        """How its engine is started."""
        return self.subject.setup if self.subject is not None else WRITES


class Registry:
    """Registered models by name."""

    def __init__(self, models: ModelsRepo, measured: stored.MeasuredRepo, clock: Clock, bus: Bus) -> None:
        self._models = models
        self._measured = measured
        self._clock = clock
        self._bus = bus
        # Changes one after another: each begins with what the one before it left.
        self._turn = asyncio.Lock()
        self._entries: dict[str, Entry] = {}
        self._names: tuple[ModelName, ...] = ()

    async def open(self) -> None:
        """Read all models and their files' headers."""
        for spec in await self._models.list():
            self._entries[spec.name] = await self._read(spec)
        self._index()

    def names(self) -> tuple[ModelName, ...]:
        """All names with their aliases, for choosing."""
        return self._names

    def entries(self) -> tuple[Entry, ...]:
        """All models, by name."""
        return tuple(self._entries[name.name] for name in self._names)

    def entry(self, name: str) -> Entry:
        """The model of this name or alias, or a model's embedder. Raises `LocalError` ``model_not_found``."""
        if name.endswith(EMBEDDER):
            return _embedder(self.entry(name.removesuffix(EMBEDDER)))
        found = find_model(name, self._names)
        if found is None:
            raise LocalError(
                "model_not_found", f"there is no model {name!r}", "see `relaydesk model list`", param="name"
            )
        return self._entries[found]

    def embedder(self, name: str) -> str:
        """Whose engine embeds for this model: its own, or the embedder beside it."""
        entry = self._entries[name]
        own = entry.header is None or is_embedding_model(entry.header)
        return name if own else name + EMBEDDER

    def capabilities(self, name: str) -> Capabilities:
        """What the model can do besides text. Of a far server everything is believed."""
        entry = self._entries[name]
        if entry.spec.kind == "url":
            return Capabilities(
                tools=True, images=True, thinking=True, embedding=True, embeds_ids=True, infill=True
            )
        header = entry.header
        # A template of the operator's own may do anything: it is not read here.
        own = bool(entry.spec.template)
        return Capabilities(
            completion=header is None or can_write(header),
            embedding=header is not None and can_embed(header),
            dimensions=header.embedding_length if header is not None else 0,
            tools=own or (header is not None and header.template_speaks_tools),
            images=bool(entry.spec.projector),
            thinking=own or (header is not None and header.template_thinks),
            infill=header is not None and header.infills,
            infill_tokens=header.infill_tokens if header is not None else None,
            vocabulary=header.vocab_size if header is not None else 0,
            template_bytes=_OWN_TEMPLATE if own else len(header.template) if header is not None else 0,
        )

    async def add(self, spec: ModelSpec) -> Entry:
        """Register a model. Raises `LocalError`: a name that is wrong or taken, a file that is no model."""
        for name in (spec.name, *spec.aliases):
            parse_model_name(name)
        _check(spec)
        stamped = msgspec.structs.replace(spec, added_ms=self._clock.wall_ms())
        async with self._turn:
            entry = await self._read(stamped)
            if entry.fault is not None:
                raise _error(entry.fault)
            await self._models.add(entry.spec)
            self._take(entry)
        return entry

    async def change(self, name: str, changes: dict[str, Any]) -> Entry:
        """Change editable fields. Raises `LocalError` ``invalid_request`` naming a field that is wrong."""
        async with self._turn:
            old = self.entry(name).spec
            spec = changed(old, changes)
            entry = await self._read(spec)
            spec = entry.spec
            if entry.fault is not None and _files(spec) != _files(old):
                raise _error(entry.fault)
            if spec.path != old.path or spec.kind != old.kind:
                # Another file than the one that was pulled: it is not ours to delete.
                size = entry.header.file_bytes if entry.header is not None else 0
                spec = msgspec.structs.replace(spec, owned=False, sha256="", size_bytes=size)
                entry = replace(entry, spec=spec)
            await self._models.replace(spec)
            self._take(entry)
        return entry

    async def remove(self, name: str) -> ModelSpec:
        """Forget a model. Its file is the caller's to delete."""
        async with self._turn:
            spec = self.entry(name).spec
            await self._models.remove(spec.name)
            del self._entries[spec.name]
            self._index()
        self._bus.publish(ModelChanged(spec.name))
        return spec

    async def measure(self, measured_entry: Entry, measured: Measured) -> None:
        """Keep what a load of this entry really used. It may have been changed or removed since."""
        spec, subject = measured_entry.spec, measured_entry.subject
        if subject is None or spec.name not in self._entries:
            return
        await self._measured.put(_to_store(measured_entry, subject, measured, self._clock.wall_ms()))
        if self._entries.get(spec.name) is measured_entry:
            self._take(replace(measured_entry, subject=msgspec.structs.replace(subject, measured=measured)))

    async def reread(self, name: str) -> Entry:
        """Look at the model's file again: it may have been repaired, replaced or removed.

        Raises `LocalError` ``model_not_found`` where the model was removed meanwhile.
        """
        if name.endswith(EMBEDDER):
            return _embedder(await self.reread(name.removesuffix(EMBEDDER)))
        while True:
            known = self.entry(name)
            entry = await self._read(known.spec)
            if self._entries.get(known.spec.name) is known:
                self._take(entry)
                return entry

    async def recheck(self, name: str) -> Entry:
        """The model; one whose file was unusable is looked at again, since somebody may have mended it."""
        entry = self._entries[name]
        return entry if entry.fault is None else await self.reread(name)

    async def _read(self, spec: ModelSpec) -> Entry:
        if spec.kind == "url":
            return Entry(spec, None)
        try:
            found = await asyncio.to_thread(read_headers, spec)
            if is_embedding_model(found.header):
                # What embeds reads one text after the other, whatever was asked for.
                spec = msgspec.structs.replace(spec, slots=1)
                found = msgspec.structs.replace(found, spec=spec)
            # A header that no need can be told from is found out here, not by the first who asks.
            estimate(found.header, spec, projector=found.projector, draft=found.draft)
        except FaultError as error:
            return Entry(spec, None, error.fault)
        options = options_key(effective_ctx(found.header, spec), spec, found.header.file_bytes)
        kept = await self._measured.get(spec.name, options)
        measured = _from_store(kept, effective_ctx(found.header, spec), spec) if kept is not None else None
        return Entry(spec, msgspec.structs.replace(found, measured=measured))

    def _take(self, entry: Entry) -> None:
        self._entries[entry.spec.name] = entry
        self._index()
        self._bus.publish(ModelChanged(entry.spec.name))

    def _index(self) -> None:
        self._names = tuple(
            ModelName(name, self._entries[name].spec.aliases) for name in sorted(self._entries)
        )


def _embedder(entry: Entry) -> Entry:
    """The engine that embeds beside the one that writes, as if it were a model of its own."""
    spec = embedder_spec(entry.spec)
    if entry.subject is None:
        return Entry(spec, None, entry.fault)
    return Entry(spec, Subject(spec=spec, header=entry.subject.header, embedder=True))


def options_key(ctx: int, spec: ModelSpec, file_bytes: int) -> str:
    """Everything that changes what a load uses, as one text: a measurement holds for exactly this.

    The file's size is in it, because another file may take the place of one that was measured.
    """
    extras = f"{spec.projector}|{spec.draft}|{spec.gpu_layers}"
    return f"{spec.path}|{file_bytes}|{ctx}|{spec.slots}|{spec.kv_k}|{spec.kv_v}|{extras}"


def _to_store(entry: Entry, subject: Subject, measured: Measured, now_ms: int) -> stored.Measured:
    return stored.Measured(
        model=entry.spec.name,
        options=options_key(measured.ctx, entry.spec, subject.header.file_bytes),
        weights_bytes=measured.weights,
        kv_bytes=measured.kv,
        compute_bytes=measured.compute,
        rss_bytes=measured.peak,
        measured_ms=now_ms,
        gpus=measured.gpus,
    )


def _from_store(kept: stored.Measured, ctx: int, spec: ModelSpec) -> Measured:
    return Measured(
        ctx=ctx,
        slots=spec.slots,
        kv_k=spec.kv_k,
        kv_v=spec.kv_v,
        gpus=kept.gpus,
        weights=kept.weights_bytes,
        kv=kept.kv_bytes,
        compute=kept.compute_bytes,
        peak=kept.rss_bytes,
    )


def changed(spec: ModelSpec, changes: dict[str, Any], allowed: frozenset[str] = EDITABLE) -> ModelSpec:
    """The specification with these fields changed. Raises `LocalError` ``invalid_request``."""
    for key in changes:
        if key not in allowed:
            raise LocalError(
                "invalid_request",
                f"a model has no setting {str(safe_text(key, 80))!r} that can be changed here",
                f"choose out of {', '.join(sorted(allowed))}",
                param=safe_text(key, 80),
            )
    try:
        made = msgspec.convert({**msgspec.to_builtins(spec), **changes}, ModelSpec)
    except msgspec.ValidationError as error:
        raise LocalError("invalid_request", f"the model's settings are wrong: {error}") from error
    for alias in made.aliases:
        parse_model_name(alias)
    _check(made)
    return made


def _files(spec: ModelSpec) -> tuple[str, str, str, str]:
    return spec.kind, spec.path, spec.projector, spec.draft


def _error(fault: Fault) -> LocalError:
    return LocalError(fault.code, fault.message, fault.hint, param=fault.param)


def _check(spec: ModelSpec) -> None:
    """Rules between fields that types cannot say."""
    if not 1 <= spec.slots <= 64:
        raise LocalError("invalid_request", f"slots is {spec.slots}", "choose 1 to 64", param="slots")
    if spec.ctx != 0 and not 128 <= spec.ctx <= 1 << 22:
        raise LocalError(
            "invalid_request",
            f"ctx is {spec.ctx} tokens",
            "choose 128 to 4194304, or 0 for the model's own",
            param="ctx",
        )
    if spec.keep_alive_s is not None and spec.keep_alive_s < -1:
        raise LocalError(
            "invalid_request",
            f"keep_alive_s is {spec.keep_alive_s}",
            "choose seconds, 0 to unload at once or -1 to keep it for ever",
            param="keep_alive_s",
        )
    if not -1 <= spec.gpu_layers <= 10_000:
        raise LocalError(
            "invalid_request",
            f"gpu_layers is {spec.gpu_layers}",
            "choose how many layers, or -1 for as many as fit",
            param="gpu_layers",
        )
    if spec.name in spec.aliases:
        raise LocalError(
            "invalid_request", f"{spec.name} is the model's own name", "choose another alias", param="aliases"
        )
    if spec.kind == "url":
        try:
            parse_engine_url(spec.url)
        except LocalError as error:
            raise LocalError("invalid_request", error.fault.message, error.fault.hint, param="url") from None
    if spec.kind == "url" and spec.host_only and not _is_loopback(spec.url):
        raise LocalError(
            "invalid_request",
            "a host-only model cannot be another machine's server",
            "leave host-only out, or register a server on 127.0.0.1",
            param="host_only",
        )
    _check_offer(spec)
    if spec.kind != "url" and not os.path.isabs(spec.path):
        raise LocalError(
            "invalid_request", "the model's path is not absolute", "give the whole path", param="path"
        )


def _check_offer(spec: ModelSpec) -> None:
    """What may be offered to the relay network (design §6)."""
    for name in ("input_rate", "output_rate"):
        if not 0 <= getattr(spec, name) <= MOST_RATE:
            raise LocalError(
                "invalid_request",
                f"{name} is {getattr(spec, name)}",
                f"choose 0 to {MOST_RATE} microUSDC per 1,000,000 tokens",
                param=name,
            )
    if spec.offer and spec.kind == "url":
        raise LocalError(
            "invalid_request",
            "a model on another server cannot be offered: strangers are answered on this machine alone",
            "offer a model that runs here",
            param="offer",
        )
    if spec.offer and spec.slots < 2:
        raise LocalError(
            "invalid_request",
            "a stranger never gets the last slot, so a model with one slot cannot be offered",
            "give it two slots or more",
            param="offer",
        )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "127.0.0.1", "::1")
