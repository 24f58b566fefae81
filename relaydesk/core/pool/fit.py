"""The fit report: does a model fit, what stands in its way, and the smallest change that would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from relaydesk.core.pool.eviction import LoadedModel
from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.memory import HostMemory, mib_down
from relaydesk.core.pool.model import KvType, ModelSpec
from relaydesk.core.pool.need import (
    Component,
    Measured,
    Need,
    Standing,
    Subject,
    amount,
    effective_ctx,
    estimate,
    stand,
)
from relaydesk.core.pool.suggest import Suggestion, settings_help, suggest

__all__ = ["Component", "FitReport", "Measured", "Need", "Suggestion", "effective_ctx", "estimate", "fit"]

Constraint = Literal["", "free", "total"]


class FitReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one model fits one machine. What is needed is rounded up, what there is rounded down.

    ``fits``: it could be loaded now, where ``unloads`` (idle models) go by themselves. ``ever_fits``: it
    could be if nothing else were loaded. ``constraint`` says what failed: the free memory or all there is.
    ``spill_mib`` is what would land in RAM beside the GPUs. ``ctx`` is what one request can use,
    ``trained_ctx`` what the model was trained for (0: its file does not say). ``measured``: the figures are
    of a real load. ``settings_help``: it does not fit, and with other settings it could if nothing else were
    loaded.
    """

    model: str
    fits: bool
    ever_fits: bool
    constraint: Constraint
    reason: str
    components: tuple[Component, ...]
    need_mib: int
    free_mib: int
    total_mib: int
    ctx: int
    slots: int
    kv_k: KvType = "f16"
    kv_v: KvType = "f16"
    trained_ctx: int = 0
    settings_help: bool = False
    spill_mib: int = 0
    unloads: tuple[str, ...] = ()
    measured: bool = False
    suggestion: Suggestion | None = None


def fit(
    spec: ModelSpec,
    header: GgufHeader,
    memory: HostMemory,
    *,
    loaded: Sequence[LoadedModel] = (),
    projector: GgufHeader | None = None,
    draft: GgufHeader | None = None,
    measured: Measured | None = None,
) -> FitReport:
    """Judge one model against one machine with these models loaded on it.

    Raises `LocalError` ``bad_model_file`` for a header that is no whole language model.
    """
    subject = Subject(spec=spec, header=header, projector=projector, draft=draft, measured=measured)
    standing = stand(subject, memory, loaded)
    verdict, need = standing.decision.verdict, standing.need
    constraint: Constraint = "" if standing.decision.now else "total" if verdict == "never" else "free"
    suggestion = suggest(subject, memory, loaded, standing) if constraint else None
    return FitReport(
        model=spec.name,
        fits=standing.decision.now,
        ever_fits=verdict != "never",
        constraint=constraint,
        reason=_reason(spec.name, standing),
        components=need.components,
        need_mib=need.mib,
        free_mib=mib_down(standing.free),
        total_mib=mib_down(standing.total),
        ctx=need.ctx,
        slots=need.slots,
        kv_k=spec.kv_k,
        kv_v=spec.kv_v,
        trained_ctx=header.context_length,
        settings_help=bool(constraint) and settings_help(subject, memory, loaded),
        spill_mib=_spill_mib(need, memory, spec) if standing.decision.now else 0,
        unloads=standing.decision.victims,
        measured=need.measured,
        suggestion=suggestion,
    )


def _spill_mib(need: Need, memory: HostMemory, spec: ModelSpec) -> int:
    gpus = [device for device in memory.usable(spec) if device.kind == "gpu"]
    return max(0, need.mib - mib_down(sum(gpu.free_bytes for gpu in gpus))) if gpus else 0


def _reason(name: str, standing: Standing) -> str:
    scale = standing.need.mib
    need, free, total = (
        amount(mib, scale) for mib in (scale, mib_down(standing.free), mib_down(standing.total))
    )
    match standing.decision.verdict:
        case "load":
            return f'"{name}" needs {need} and {free} are free'
        case "evict":
            victims = ", ".join(standing.decision.victims)
            return f'"{name}" needs {need}, {free} are free, and unloading {victims} makes the room'
        case "wait":
            return f'"{name}" needs {need}, {free} are free, and models in use hold the rest'
        case "blocked":
            return (
                f'"{name}" needs {need}, {free} are free, and the rest is held by models that are kept '
                "loaded or by other programs"
            )
        case _:
            return f'"{name}" needs {need}, more than the {total} there are in all'
