"""The smallest change that would make a model fit.

A suggestion is a claim that somebody will act on. So each one has been tried: the changed model is sized
again and compared with the same machine before it is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from relaydesk.core.pool.eviction import LoadedModel
from relaydesk.core.pool.ggml import KV_TYPES
from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.kvcache import CELLS
from relaydesk.core.pool.memory import MIB, HostMemory, mib_down, mib_up
from relaydesk.core.pool.model import KvType, ModelSpec
from relaydesk.core.pool.need import Standing, Subject, amount, effective_ctx, stand

MIN_CTX: Final = 512  # with less, one request can do nothing useful
# The one memory that there is where the setting of this name pretends it.
SETTING: Final = "RELAY_HOST_MEMORY_MB"
_QUANT_BLOCK: Final = 32  # a quantised cache needs heads of a multiple of this

Tried = Callable[[ModelSpec, bool], Standing]


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """One change after which the model would fit now.

    ``change`` names what changes, joined with ``+`` in this order: ``unload``, ``kv``, ``slots``, ``ctx``,
    ``memory``; or it is ``wait``, where models in use hold the room and nothing has to change. ``ctx``,
    ``slots``, ``kv_k`` and ``kv_v`` are the settings to use, ``unload`` the models to unload by hand,
    ``more_mib`` the memory that must be freed or added; ``need_mib`` is the need after the change.
    """

    change: str
    sentence: str
    ctx: int
    slots: int
    kv_k: KvType
    kv_v: KvType
    unload: tuple[str, ...] = ()
    more_mib: int = 0
    need_mib: int = 0


def settings_help(subject: Subject, memory: HostMemory, loaded: Sequence[LoadedModel]) -> bool:
    """Whether with other settings the model could be loaded if nothing else were."""
    least = msgspec.structs.replace(subject, spec=_smallest(subject.spec, subject.header))
    return stand(least, memory, loaded).decision.verdict != "never"


def suggest(
    subject: Subject, memory: HostMemory, loaded: Sequence[LoadedModel], standing: Standing
) -> Suggestion:
    """The smallest change that makes the model fit now, or how much memory is missing.

    Smallest means what a request and its owner notice least: a KV cache of 8 bits, then unloading a model
    that is idle but kept by wish, then fewer requests at once, then a shorter context, then a cache of 4
    bits, then several of these, and only then memory. A context beyond what the model was trained for goes
    first: nobody loses anything by it.
    """
    kept = [replace(model, pinned=False) for model in loaded]

    if standing.decision.verdict == "wait":
        return _wait(subject, loaded, standing)

    def tried(spec: ModelSpec, unload: bool) -> Standing:
        return stand(msgspec.structs.replace(subject, spec=spec), memory, kept if unload else loaded)

    for spec, unload in _candidates(subject.spec, subject.header, tried):
        found = tried(spec, unload)
        if found.decision.now:
            pinned = {model.name for model in loaded if model.pinned}
            victims = tuple(name for name in found.decision.victims if name in pinned)
            return _say(subject, spec, found, memory, unload=victims)
    return _with_memory(subject, memory, loaded, standing)


def _wait(subject: Subject, loaded: Sequence[LoadedModel], standing: Standing) -> Suggestion:
    """It fits once what is in use falls idle: no setting has to be given up for that."""
    spec = subject.spec
    busy = [model.name for model in loaded if model.name != spec.name and not model.idle]
    falls = "falls" if len(busy) == 1 else "fall"
    return Suggestion(
        change="wait",
        sentence=f"wait until {_joined(busy)} {falls} idle: a request for {spec.name} does so by itself",
        ctx=standing.need.ctx,
        slots=spec.slots,
        kv_k=spec.kv_k,
        kv_v=spec.kv_v,
        need_mib=standing.need.mib,
    )


def _with_memory(
    subject: Subject, memory: HostMemory, loaded: Sequence[LoadedModel], standing: Standing
) -> Suggestion:
    """What memory is missing: with the smallest settings where they spare at least half of it.

    Nobody is told to buy memory for context beyond what the model was trained for.
    """
    spec, least = subject.spec, _smallest(subject.spec, subject.header)
    if _beyond(spec, subject.header):
        spec = msgspec.structs.replace(spec, ctx=subject.header.context_length)
        standing = stand(msgspec.structs.replace(subject, spec=spec), memory, loaded)
    smaller = stand(msgspec.structs.replace(subject, spec=least), memory, loaded)
    whole, rest = (_missing_mib(subject.spec.name, loaded, each) for each in (standing, smaller))
    if 2 * rest <= whole:
        return _say(subject, least, smaller, memory, more_mib=rest)
    return _say(subject, spec, standing, memory, more_mib=whole)


def _candidates(spec: ModelSpec, header: GgufHeader, tried: Tried) -> Iterator[tuple[ModelSpec, bool]]:
    """Changes to try, the smallest first. Each is the least of its own kind; none is known to work."""
    change = msgspec.structs.replace
    if _beyond(spec, header):
        spec = change(spec, ctx=header.context_length)
        yield spec, False
    ctx = effective_ctx(header, spec)
    eight, four = _lighter(spec, header, "q8_0"), _lighter(spec, header, "q4_0")

    def slots(base: ModelSpec, unload: bool) -> ModelSpec:
        def works(count: int) -> bool:
            return tried(change(base, slots=count), unload).decision.now

        return change(base, slots=_largest(1, base.slots - 1, works))

    def shorter(base: ModelSpec, unload: bool) -> ModelSpec:
        def works(cells: int) -> bool:
            return tried(change(base, ctx=cells * CELLS), unload).decision.now

        return change(base, ctx=CELLS * _largest(MIN_CTX // CELLS, (ctx - 1) // CELLS, works))

    for unload in (False, True):
        if unload:
            yield spec, True
        yield eight, unload
        if not unload:
            yield spec, True
        for base in (spec, eight, four):
            if base is four:
                yield four, unload
            if spec.slots > 1:
                yield slots(base, unload), unload
            if ctx > MIN_CTX:
                yield shorter(base, unload), unload
        if spec.slots > 1 and ctx > MIN_CTX:
            for base in (spec, eight, four):
                yield shorter(change(base, slots=1), unload), unload


def _beyond(spec: ModelSpec, header: GgufHeader) -> bool:
    return 0 < header.context_length < spec.ctx


def _lighter(spec: ModelSpec, header: GgufHeader, kind: KvType) -> ModelSpec:
    """The spec with cache types of at most ``kind``'s size, where the model's heads allow them."""
    if any(length % _QUANT_BLOCK for length in (header.key_length, header.value_length)):
        return spec

    def least(now: KvType) -> KvType:
        return min(now, kind, key=lambda each: KV_TYPES[each].row_bytes(_QUANT_BLOCK))

    return msgspec.structs.replace(spec, kv_k=least(spec.kv_k), kv_v=least(spec.kv_v))


def _smallest(spec: ModelSpec, header: GgufHeader) -> ModelSpec:
    """All settings as small as they usefully can be."""
    ctx = min(effective_ctx(header, spec), header.context_length or MIN_CTX, MIN_CTX)
    return msgspec.structs.replace(_lighter(spec, header, "q4_0"), slots=1, ctx=ctx)


def _largest(low: int, high: int, works: Callable[[int], bool]) -> int:
    """The largest number from ``low`` to ``high`` that works, where smaller ones work too; else ``low``."""
    while low < high:
        middle = (low + high + 1) // 2
        if works(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _missing_mib(name: str, loaded: Sequence[LoadedModel], standing: Standing) -> int:
    """What must come to the free memory, after what unloading idle models gives by itself."""
    idle = sum(model.bytes for model in loaded if model.name != name and model.idle and not model.pinned)
    return mib_up(standing.need.bytes - mib_down(standing.free) * MIB - idle)


def _say(
    subject: Subject,
    spec: ModelSpec,
    standing: Standing,
    memory: HostMemory,
    *,
    unload: tuple[str, ...] = (),
    more_mib: int = 0,
) -> Suggestion:
    old, need = subject.spec, standing.need
    old_ctx = effective_ctx(subject.header, old)
    changed: list[str] = []
    steps: list[str] = []
    if unload:
        changed.append("unload")
        steps.append(f"unload {' and '.join(unload)}, idle but kept loaded")
    if (spec.kv_k, spec.kv_v) != (old.kv_k, old.kv_v):
        changed.append("kv")
        steps.append(f"keep its KV cache as {_types(spec)} (now {_types(old)})")
    if spec.slots != old.slots:
        changed.append("slots")
        plural = "" if spec.slots == 1 else "s"
        steps.append(f"answer at most {spec.slots} request{plural} at once (now {old.slots})")
    if need.ctx != old_ctx:
        changed.append("ctx")
        steps.append(f"give a request {need.ctx} tokens of context (now {old_ctx})")
    if more_mib:
        changed.append("memory")
        steps.append(_more(more_mib, need.mib, standing, memory))
    together = _joined(steps)
    if more_mib:
        sentence = f"{together}, or pick a smaller or more quantised model"
    else:
        sentence = f"{together}: it then needs {amount(need.mib, need.mib)} and fits"
    return Suggestion(
        change="+".join(changed),
        sentence=sentence,
        ctx=need.ctx,
        slots=spec.slots,
        kv_k=spec.kv_k,
        kv_v=spec.kv_v,
        unload=unload,
        more_mib=more_mib,
        need_mib=need.mib,
    )


def _more(more_mib: int, need_mib: int, standing: Standing, memory: HostMemory) -> str:
    if any(device.name == SETTING for device in memory.devices):
        total = mib_down(standing.total)
        return f"raise {SETTING} to {total + more_mib} (now {total})"
    verb = "add" if standing.decision.verdict == "never" else "free"
    return f"{verb} {amount(more_mib, need_mib)} of memory"


def _types(spec: ModelSpec) -> str:
    return spec.kv_k if spec.kv_k == spec.kv_v else f"{spec.kv_k} and {spec.kv_v}"


def _joined(steps: Sequence[str]) -> str:
    return " and ".join([", ".join(steps[:-1]), steps[-1]] if len(steps) > 1 else steps)
