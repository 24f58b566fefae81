"""The fit report: does a model fit, what stands in its way, and the smallest change that would help.

A suggestion is a claim that somebody will act on. So each one has been tried: the changed model is sized
again and compared with the same machine before it is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

import msgspec

from relaydesk.core.pool.eviction import LoadedModel, choose_victims
from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.kvcache import CELLS
from relaydesk.core.pool.memory import MIB, HostMemory, mib_down, mib_up
from relaydesk.core.pool.model import KvType, ModelSpec
from relaydesk.core.pool.need import (
    Component,
    Measured,
    Need,
    Standing,
    Subject,
    effective_ctx,
    estimate,
    stand,
)

__all__ = ["Component", "FitReport", "Measured", "Need", "Suggestion", "effective_ctx", "estimate", "fit"]

MIN_CTX: Final = 512  # with less, one request can do nothing useful
_QUANT_BLOCK: Final = 32  # a quantised cache needs heads of a multiple of this

Constraint = Literal["", "free", "total"]
Change = Literal["kv", "unload", "slots", "ctx", "kv+slots", "kv+ctx", "kv+slots+ctx", "memory"]


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """One change after which the model would fit now.

    ``ctx``, ``slots``, ``kv_k`` and ``kv_v`` are the settings to use, ``unload`` the models to unload by
    hand, ``more_mib`` the memory that must be freed or added; ``need_mib`` is the need after the change.
    """

    change: Change
    sentence: str
    ctx: int
    slots: int
    kv_k: KvType
    kv_v: KvType
    unload: tuple[str, ...] = ()
    more_mib: int = 0
    need_mib: int = 0


class FitReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one model fits one machine. What is needed is rounded up, what there is rounded down.

    ``fits``: it could be loaded now, where ``unloads`` (idle models) go by themselves. ``ever_fits``: it
    could be if nothing else were loaded. ``constraint`` says what failed: the free memory or all there is.
    ``spill_mib`` is what would land in RAM beside the GPUs. ``ctx`` is what one request can use.
    ``measured``: the figures are of a real load.
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
    suggestion = _suggest(subject, memory, loaded, standing) if constraint else None
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
        spill_mib=_spill_mib(need, memory, spec) if standing.decision.now else 0,
        unloads=standing.decision.victims,
        measured=need.measured,
        suggestion=suggestion,
    )


def _spill_mib(need: Need, memory: HostMemory, spec: ModelSpec) -> int:
    gpus = [device for device in memory.usable(spec) if device.kind == "gpu"]
    return max(0, need.mib - mib_down(sum(gpu.free_bytes for gpu in gpus))) if gpus else 0


def _reason(name: str, standing: Standing) -> str:
    need, free, total = standing.need.mib, mib_down(standing.free), mib_down(standing.total)
    match standing.decision.verdict:
        case "load":
            return f'"{name}" needs {need} MiB and {free} MiB are free'
        case "evict":
            victims = ", ".join(standing.decision.victims)
            return f'"{name}" needs {need} MiB, {free} MiB are free, and unloading {victims} makes the room'
        case "wait":
            return f'"{name}" needs {need} MiB, {free} MiB are free, and models in use hold the rest'
        case "blocked":
            return (
                f'"{name}" needs {need} MiB, {free} MiB are free, and the rest is held by models that are '
                "kept loaded or by other programs"
            )
        case _:
            return f'"{name}" needs {need} MiB, more than the {total} MiB there are in all'


def _suggest(
    subject: Subject, memory: HostMemory, loaded: Sequence[LoadedModel], standing: Standing
) -> Suggestion:
    """The smallest change that makes the model fit now, or how much memory is missing.

    Smallest means what a request and its owner notice least: a KV cache of 8 bits, then unloading a model
    that is idle but kept by wish, then fewer requests at once, then a shorter context, then a cache of 4
    bits, then several of these; no change of settings can replace memory for the weights.
    """

    def tried(spec: ModelSpec) -> Standing:
        return stand(msgspec.structs.replace(subject, spec=spec), memory, loaded)

    def works(spec: ModelSpec) -> bool:
        return tried(spec).decision.now

    for change, spec in _changes(subject.spec, subject.header, works):
        if change == "unload":
            victims = _by_hand(loaded, subject.spec.name, standing)
            if victims:
                return _say(change, subject.spec, standing.need, unload=victims)
        elif works(spec):
            return _say(change, spec, tried(spec).need)
    missing = _missing_mib(subject.spec.name, loaded, standing)
    never = standing.decision.verdict == "never"
    return _say("memory", subject.spec, standing.need, more_mib=missing, never=never)


def _changes(
    spec: ModelSpec, header: GgufHeader, works: Callable[[ModelSpec], bool]
) -> Iterator[tuple[Change, ModelSpec]]:
    """Candidates, the smallest change first. Each is the least of its own kind; none is known to work."""
    change = msgspec.structs.replace
    ctx = effective_ctx(header, spec)
    quantises = all(length % _QUANT_BLOCK == 0 for length in (header.key_length, header.value_length))
    eight = change(spec, kv_k="q8_0", kv_v="q8_0")
    four = change(spec, kv_k="q4_0", kv_v="q4_0")

    def slots(base: ModelSpec) -> ModelSpec:
        most = _largest(1, spec.slots - 1, lambda count: works(change(base, slots=count)))
        return change(base, slots=most)

    def shorter(base: ModelSpec) -> ModelSpec:
        top = (ctx - 1) // CELLS
        most = _largest(MIN_CTX // CELLS, top, lambda cells: works(change(base, ctx=cells * CELLS)))
        return change(base, ctx=most * CELLS)

    if quantises:
        yield "kv", eight
    yield "unload", spec
    if spec.slots > 1:
        yield "slots", slots(spec)
    if ctx > MIN_CTX:
        yield "ctx", shorter(spec)
    if quantises:
        yield "kv", four
        if spec.slots > 1:
            yield "kv+slots", slots(eight)
        if ctx > MIN_CTX:
            yield "kv+slots+ctx" if spec.slots > 1 else "kv+ctx", shorter(change(eight, slots=1))


def _largest(low: int, high: int, works: Callable[[int], bool]) -> int:
    """The largest number from ``low`` to ``high`` that works, where smaller ones work too; else ``low``."""
    while low < high:
        middle = (low + high + 1) // 2
        if works(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _by_hand(loaded: Sequence[LoadedModel], name: str, standing: Standing) -> tuple[str, ...]:
    """Idle models that would make the room, those that are kept by wish among them; empty if none would."""
    if standing.decision.verdict == "never":
        return ()
    others = [replace(model, pinned=False) for model in loaded if model.name != name]
    return choose_victims(others, standing.need.bytes, mib_down(standing.free) * MIB) or ()


def _missing_mib(name: str, loaded: Sequence[LoadedModel], standing: Standing) -> int:
    """What must come to the free memory, after what unloading idle models gives by itself."""
    idle = sum(model.bytes for model in loaded if model.name != name and model.idle and not model.pinned)
    return mib_up(standing.need.bytes - mib_down(standing.free) * MIB - idle)


def _say(
    change: Change,
    spec: ModelSpec,
    need: Need,
    *,
    unload: tuple[str, ...] = (),
    more_mib: int = 0,
    never: bool = False,
) -> Suggestion:
    steps: list[str] = []
    if "kv" in change:
        steps.append(f"keep its KV cache as {spec.kv_k}")
    if "slots" in change:
        steps.append(f"answer {spec.slots} request{'s' if spec.slots > 1 else ''} at once")
    if "ctx" in change:
        steps.append(f"give a request {need.ctx} tokens of context")
    if unload:
        steps.append(f"unload {' and '.join(unload)}, idle but kept loaded")
    if not steps:
        verb = "add" if never else "free"
        sentence = f"{verb} {more_mib} MiB of memory, or pick a smaller or more quantised model"
    else:
        sentence = f"{' and '.join(steps)}: it then needs {need.mib} MiB and fits"
    return Suggestion(
        change=change,
        sentence=sentence,
        ctx=need.ctx,
        slots=spec.slots,
        kv_k=spec.kv_k,
        kv_v=spec.kv_v,
        unload=unload,
        more_mib=more_mib,
        need_mib=need.mib,
    )
