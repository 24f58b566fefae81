"""What a worker is told to run, and what it was measured to be once it runs."""

from __future__ import annotations

from typing import Literal

import msgspec

from relaydesk.core.pool.model import KvType
from relaydesk.core.pool.setup import WRITES, EngineSetup

BufferKind = Literal["model", "kv", "compute", "output", "other"]


class EngineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's orders.

    ``ctx_total`` is in tokens over all slots: a request can use ``ctx_total // slots``. ``alias`` is the
    only name the engine answers with, so that the file's path never shows. ``threads`` 0 means the cores
    it may use less one. ``setup`` says whether it writes or embeds; its batch bounds how many prompt tokens
    run between two looks at the client, and how long one embedded text may be. ``template`` is Jinja text,
    empty for the model's own. ``gpu_layers`` -1 means as many as fit. ``metrics`` opens the engine's
    counters: for tests.
    """

    model_path: str
    alias: str
    ctx_total: int
    slots: int = 4
    threads: int = 0
    setup: EngineSetup = WRITES
    kv_k: KvType = "f16"
    kv_v: KvType = "f16"
    template: str = ""
    projector: str = ""
    draft: str = ""
    gpu_layers: int = -1
    metrics: bool = False


class EngineOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The one line a worker reads from its pipe: the specification and what must never be in argv."""

    spec: EngineSpec
    key: str
    socket: str
    parent: int

    def __repr__(self) -> str:
        return f"EngineOrder(spec={self.spec!r}, socket={self.socket!r})"


class EngineBuffer(msgspec.Struct, frozen=True):
    """One allocation the engine reported while it loaded: ``device`` is the engine's name for it."""

    device: str
    kind: BufferKind
    size_bytes: int


class EngineReady(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded worker, measured.

    The buffer figures are the engine's own (rounded to 0.01 MiB there), 0 where it reported none. ``rss``
    and ``pss`` are the process's memory right after the load, 0 where the system does not tell; weights
    are mapped, so they count towards both once they were touched.
    """

    pid: int
    slots: int
    ctx_slot: int
    load_s: float
    weights_bytes: int = 0
    kv_bytes: int = 0
    compute_bytes: int = 0
    rss_bytes: int = 0
    pss_bytes: int = 0
    buffers: tuple[EngineBuffer, ...] = ()


LoadStage = Literal["starting", "reading", "loading", "warming"]


class LoadProgress(msgspec.Struct, frozen=True):
    """How far a load is. ``fraction`` is what was read of the model's file, None where unknown."""

    stage: LoadStage
    fraction: float | None = None
