"""What a model needs in memory, component by component, on a given machine.

Weights and KV cache are exact sums over the file's own numbers. The compute buffer is a formula and the
process's own memory a constant, both checked against a small model on the CPU (figures beside them); on GPUs
they are taken from what the engines' own documents name and not measured. What a real load of the same
configuration used replaces the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.eviction import Decision, LoadedModel, decide
from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.kvcache import cache_bytes, round_up_ctx
from relaydesk.core.pool.memory import MIB, HostMemory, mib_down, mib_up
from relaydesk.core.pool.model import KvType, ModelSpec
from relaydesk.core.pool.setup import WRITES, EngineSetup, engine_setup, has_outputs

DEFAULT_CTX: Final = 4096  # of a model whose operator chose none, if its training allows as much

# A worker without any model's buffers: interpreter and library 23 MiB, the engine's own structures and
# threads the rest. Measured as what the process held at its peak beyond weights, KV, compute and output
# buffers: 61 to 64 MiB where it wrote, 59 and 60 where it embedded, for every context and number of slots.
CPU_OVERHEAD: Final = 64 * MIB
# What a GPU's driver and its library of kernels take on each GPU used: users report 150 to 500 MiB.
GPU_OVERHEAD: Final = 512 * MIB
# An image encoder computes in buffers of its own; nothing in its file says how large. Not measured.
PROJECTOR_COMPUTE: Final = 64 * MIB
MARGIN_FLOOR: Final = 16 * MIB
MARGIN_PERCENT: Final = 5  # of all that is not weights: those are known to the byte
MEASURED_MARGIN_PERCENT: Final = 2


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one real load used, in bytes, and with which settings. 0 means not measured.

    ``peak`` is the most that the worker held in all, RAM and GPUs together.
    """

    ctx: int
    slots: int
    kv_k: KvType
    kv_v: KvType
    gpus: int = 0
    weights: int = 0
    kv: int = 0
    compute: int = 0
    peak: int = 0


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What a model needs, by component, in bytes. ``ctx`` is per slot; ``measured`` that figures are real."""

    ctx: int
    slots: int
    weights: int
    kv: int
    recurrent: int = 0
    compute: int = 0
    projector: int = 0
    draft: int = 0
    overhead: int = 0
    margin: int = 0
    measured: bool = False

    @property
    def components(self) -> tuple[Component, ...]:
        """The components that are there, each in MiB rounded up."""
        return tuple(Component(name, mib_up(getattr(self, name))) for name in _PARTS if getattr(self, name))

    @property
    def mib(self) -> int:
        """The whole in MiB, as the sum of the components shown: what is shown adds up, and decides."""
        return sum(component.mib for component in self.components)

    @property
    def bytes(self) -> int:
        """`mib` in bytes."""
        return self.mib * MIB


_PARTS: Final = ("weights", "kv", "recurrent", "compute", "projector", "draft", "overhead", "margin")


def amount(mib: int, scale: int) -> str:
    """MiB as people read them; in GiB where ``scale``, the largest need shown beside it, has 10 or more."""
    return f"{mib / 1024:.2f} GiB" if scale >= 10 * 1024 else f"{mib} MiB"


class Component(msgspec.Struct, frozen=True):
    """One part of what a model needs."""

    name: str
    mib: int


def effective_ctx(header: GgufHeader, spec: ModelSpec) -> int:
    """What one request can use, in tokens."""
    return spec.ctx or min(header.context_length or DEFAULT_CTX, DEFAULT_CTX)


def compute_bytes(header: GgufHeader, ctx: int, slots: int, setup: EngineSetup = WRITES) -> int:
    """The engine's compute buffer, and the output buffer behind it.

    A micro-batch of tokens passes through at once. The largest things alive together are either the rows of
    a feed-forward block, or the hidden rows with the logits: those of one token a slot where an engine
    writes, of every token where it embeds, which also brings them into the output buffer. Beside them stands
    the f16 mask of what each token may see.

    Against the engine's own report for a model with 576 wide rows and 49,152 tokens: 4.91 MiB at 4 slots of
    2048 tokens, this formula says 5.05; it keeps 2 to 4 % above it from 1 to 16 slots, from 512 to 8192
    tokens, and for micro-batches of 256 and 512. Embedding, 25.54 MiB at 512 tokens, 25.64 here, and within
    1 % for micro-batches of 512 to 2048.
    """
    hidden = max(header.feed_forward_length, header.expert_feed_forward_length * header.expert_used_count)
    width = header.embedding_length
    vocab = header.vocab_size if has_outputs(header) else 0
    outputs = setup.batch if setup.embeds else slots
    block = setup.batch * 4 * (2 * hidden + 8 * width)
    last = setup.batch * 4 * (hidden + 3 * width) + outputs * 4 * vocab
    masks = setup.batch * 2 * round_up_ctx(ctx) * (2 if header.sliding_window else 1)
    return max(block, last) + masks + outputs * 4 * (vocab + width)


def estimate(
    header: GgufHeader,
    spec: ModelSpec,
    *,
    gpus: int = 0,
    projector: GgufHeader | None = None,
    draft: GgufHeader | None = None,
    measured: Measured | None = None,
    embedder: bool = False,
) -> Need:
    """What this model needs when run as ``spec`` says, on the CPU or over ``gpus`` GPUs.

    ``embedder`` says that it is run to embed, beside an engine that writes.

    A measurement of the very same run replaces the estimate. One of other settings corrects it: each
    component keeps the proportion that it had there to its formula, so that a smaller run never seems to
    need more than the one that was measured.

    Raises `LocalError` ``bad_model_file`` for a header that is no whole language model.
    """
    _require_model(header, spec)
    plain = _by_formula(header, spec, gpus, projector, draft, embedder)
    if measured is None:
        return _with_margin(plain, MARGIN_PERCENT)
    if _same_run(measured, plain.ctx, spec, gpus):
        return _with_margin(_measured(plain, measured), MEASURED_MARGIN_PERCENT, known=True)
    if measured.gpus != gpus:
        return _with_margin(_but(plain, weights=measured.weights or plain.weights), MARGIN_PERCENT)
    then_spec = msgspec.structs.replace(
        spec, ctx=measured.ctx, slots=measured.slots, kv_k=measured.kv_k, kv_v=measured.kv_v
    )
    then_plain = _by_formula(header, then_spec, gpus, projector, draft, embedder)
    then = _measured(then_plain, measured)
    cache, then_cache = plain.kv + plain.recurrent, then_plain.kv + then_plain.recurrent
    kv = _scaled(cache, then.kv + then.recurrent, then_cache)
    recurrent = _scaled(plain.recurrent, then.kv + then.recurrent, then_cache)
    corrected = _but(
        plain,
        weights=then.weights,
        kv=kv - recurrent,
        recurrent=recurrent,
        compute=_scaled(plain.compute, then.compute, then_plain.compute),
        overhead=then.overhead,
    )
    smaller = _rest(corrected) <= _rest(then)
    return _with_margin(corrected, MEASURED_MARGIN_PERCENT if smaller else MARGIN_PERCENT)


def _by_formula(
    header: GgufHeader,
    spec: ModelSpec,
    gpus: int,
    projector: GgufHeader | None,
    draft: GgufHeader | None,
    embedder: bool,
) -> Need:
    """Every component but the margin, by the file's numbers alone."""
    ctx = effective_ctx(header, spec)
    setup = engine_setup(header, ctx, embedder=embedder)
    cache = cache_bytes(header, ctx, spec.slots, spec.kv_k, spec.kv_v, setup.batch)
    spread = max(1, gpus)
    return Need(
        ctx=ctx,
        slots=spec.slots,
        weights=header.tensor_bytes,
        kv=cache.kv,
        recurrent=cache.recurrent,
        compute=compute_bytes(header, ctx, spec.slots, setup) * spread,
        projector=projector.tensor_bytes + PROJECTOR_COMPUTE if projector else 0,
        draft=_draft_bytes(draft, ctx, spec.slots) * spread if draft else 0,
        overhead=CPU_OVERHEAD + GPU_OVERHEAD * gpus,
    )


def _measured(plain: Need, seen: Measured) -> Need:
    """The components of the measured run itself, where ``plain`` is what the formulas say of it."""
    kv, recurrent = (seen.kv, 0) if seen.kv else (plain.kv, plain.recurrent)
    found = _but(
        plain,
        weights=seen.weights or plain.weights,
        kv=kv,
        recurrent=recurrent,
        compute=seen.compute or plain.compute,
    )
    if not seen.peak:
        return found
    # The peak holds everything. Reserved pages that were never touched are not in it, and may yet be: the
    # larger of the two counts.
    parts = found.weights + _rest(found) - found.overhead
    return _but(found, overhead=max(0, seen.peak - parts))


def _with_margin(need: Need, percent: int, *, known: bool = False) -> Need:
    return _but(need, margin=max(MARGIN_FLOOR, _rest(need) * percent // 100), measured=known)


def _rest(need: Need) -> int:
    """All but the weights and the margin, in bytes."""
    return need.kv + need.recurrent + need.compute + need.projector + need.draft + need.overhead


def _scaled(count: int, seen: int, formula: int) -> int:
    """``count`` in the proportion of what was seen to what its formula said."""
    return count * seen // formula if formula else count


def _but(need: Need, **changes: int) -> Need:
    return msgspec.structs.replace(need, **changes)


def _require_model(header: GgufHeader, spec: ModelSpec) -> None:
    name = f'the model file of "{spec.name}"'
    if header.is_projector:
        raise LocalError(
            "bad_model_file",
            f"{name} is a projector, which goes beside a model",
            "add the model itself and name this file as its projector",
        )
    if header.split_count > 1:
        raise LocalError(
            "bad_model_file",
            f"{name} is only part {header.split_no + 1} of {header.split_count}",
            "put all parts into one directory",
        )
    if not header.block_count or not header.embedding_length:
        raise LocalError(
            "bad_model_file",
            f"{name} is no language model: it names no blocks or no width",
            "add a text model as GGUF",
        )


def _draft_bytes(draft: GgufHeader, ctx: int, slots: int) -> int:
    """A draft model beside the model: its weights, an f16 cache as long as the model's, its compute."""
    cache = cache_bytes(draft, ctx, slots, "f16", "f16")
    return draft.tensor_bytes + cache.kv + cache.recurrent + compute_bytes(draft, ctx, slots)


def _same_run(measured: Measured, ctx: int, spec: ModelSpec, gpus: int) -> bool:
    return (measured.ctx, measured.slots, measured.kv_k, measured.kv_v, measured.gpus) == (
        ctx,
        spec.slots,
        spec.kv_k,
        spec.kv_v,
        gpus,
    )


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A model and everything that is known about it, as one question to `needed`.

    ``embedder`` says that it is about the engine that embeds beside the one that writes.
    """

    spec: ModelSpec
    header: GgufHeader
    projector: GgufHeader | None = None
    draft: GgufHeader | None = None
    measured: Measured | None = None
    embedder: bool = False

    @property
    def setup(self) -> EngineSetup:
        """How its engine is started."""
        return engine_setup(self.header, effective_ctx(self.header, self.spec), embedder=self.embedder)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A model against a machine, in figures: what `fit` reports and varies."""

    need: Need
    free: int
    total: int
    decision: Decision


def needed(subject: Subject, memory: HostMemory) -> Need:
    """What the model needs on this machine: on as few of its GPUs as do, else on the CPU.

    Every GPU more costs a compute buffer and a driver's share, so the count decides the need: the fewest
    with enough free memory, else the fewest that are large enough, else all.
    """

    def on(gpus: int) -> Need:
        return estimate(
            subject.header,
            subject.spec,
            gpus=gpus,
            projector=subject.projector,
            draft=subject.draft,
            measured=subject.measured,
            embedder=subject.embedder,
        )

    usable = memory.usable(subject.spec)
    gpus = [device for device in usable if device.kind == "gpu"]
    if not gpus:
        return on(0)
    options = [on(count) for count in range(1, len(gpus) + 1)]
    for room in ([gpu.free_bytes for gpu in gpus], [gpu.total_bytes for gpu in gpus]):
        for count, option in enumerate(options, 1):
            if option.mib <= mib_down(sum(room[:count])):
                return option
    return options[-1]


def stand(subject: Subject, memory: HostMemory, loaded: Sequence[LoadedModel]) -> Standing:
    """Compare need and room."""
    need = needed(subject, memory)
    free, total = memory.free_bytes(subject.spec), memory.total_bytes(subject.spec)
    others = [model for model in loaded if model.name != subject.spec.name]
    decision = decide(others, need.bytes, mib_down(free) * MIB, mib_down(total) * MIB)
    return Standing(need=need, free=free, total=total, decision=decision)
