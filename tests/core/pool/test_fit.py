from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.eviction import LoadedModel
from relaydesk.core.pool.fit import FitReport, Measured, effective_ctx, estimate, fit
from relaydesk.core.pool.gguf import GgufHeader, read_header
from relaydesk.core.pool.kvcache import cache_bytes
from relaydesk.core.pool.memory import MIB, Device, HostMemory
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.need import CPU_OVERHEAD, GPU_OVERHEAD, compute_bytes
from relaydesk.core.pool.setup import EngineSetup, embedder_spec
from relaydesk.core.text import safe_text
from tests.support.gguf_builder import tiny

# The figures of SmolLM2-135M, which the engine's own report was compared with.
SMOL = GgufHeader(
    version=3,
    kind=safe_text("model"),
    architecture=safe_text("llama"),
    name=safe_text("SmolLM2"),
    file_type="Q4_1",
    file_bytes=98_362_432,
    block_count=30,
    context_length=8192,
    embedding_length=576,
    feed_forward_length=1536,
    head_count=9,
    head_count_kv=3,
    key_length=64,
    value_length=64,
    key_length_swa=64,
    value_length_swa=64,
    vocab_size=49152,
    tensor_count=272,
    tensor_bytes=96_576_768,
)


def but(header: GgufHeader, **changes: object) -> GgufHeader:
    return replace(header, **changes)  # type: ignore[arg-type]


def spec(**changes: object) -> ModelSpec:
    return msgspec.structs.replace(ModelSpec(name="smol", ctx=2048, slots=4), **changes)


def host(free_mib: int, total_mib: int | None = None) -> HostMemory:
    total = free_mib if total_mib is None else total_mib
    return HostMemory((Device("memory", "ram", total * MIB, free_mib * MIB),))


# --- what is needed


@pytest.mark.parametrize(
    ("ctx", "slots", "mib"), [(2048, 1, 137.1), (512, 4, 137.1), (8192, 1, 272.1), (2048, 4, 272.1)]
)
def test_weights_and_kv_as_measured(ctx: int, slots: int, mib: float) -> None:
    need = estimate(SMOL, spec(ctx=ctx, slots=slots))
    assert (need.weights + need.kv) / MIB == pytest.approx(mib, abs=0.05)


def test_weights_and_kv_of_the_real_file(smollm2: Path) -> None:
    header = read_header(smollm2.read_bytes())
    assert estimate(header, spec()) == estimate(SMOL, spec())


def test_kv_types() -> None:
    # The engine's own report: 95.62 MiB with q8_0 where f16 takes 180.
    assert estimate(SMOL, spec(kv_k="q8_0", kv_v="q8_0")).kv / MIB == pytest.approx(95.62, abs=0.01)
    mixed = estimate(SMOL, spec(kv_k="f16", kv_v="q4_0")).kv
    assert mixed / MIB == pytest.approx(90 + 90 * 18 / 64, abs=0.01)


@pytest.mark.parametrize(
    ("ctx", "slots", "reported"),
    [
        (512, 1, 3.79 + 0.19),
        (512, 4, 3.79 + 0.75),
        (2048, 4, 4.16 + 0.75),
        (8192, 1, 5.66 + 0.19),
        (8192, 4, 5.66 + 0.75),
        (1024, 16, 4.66 + 3.0),
    ],
)
def test_compute_is_just_above_what_the_engine_reports(ctx: int, slots: int, reported: float) -> None:
    predicted = compute_bytes(SMOL, ctx, slots) / MIB
    assert reported <= predicted < reported * 1.04


@pytest.mark.parametrize(("batch", "reported"), [(128, 25.54), (512, 102.15), (1024, 205.29), (2048, 414.59)])
def test_compute_of_an_engine_that_embeds(batch: int, reported: float) -> None:
    setup = EngineSetup(batch, "mean")
    # Behind the compute buffer stands the output buffer: what every token could be followed by.
    output = batch * 4 * (49152 + 576) / MIB
    predicted = compute_bytes(SMOL, max(512, batch), 1, setup) / MIB - output
    assert reported <= predicted < reported * 1.01


def test_the_whole_covers_the_measured_peak() -> None:
    # Resident memory at its peak, with 4 slots: 344.2 MiB for 2048 tokens each, 206.5 for 512.
    assert 344.2 < estimate(SMOL, spec()).mib < 344.2 * 1.25
    assert 206.5 < estimate(SMOL, spec(ctx=512)).mib < 206.5 * 1.25
    # And 208 MiB for an embedder.
    embedder = estimate(SMOL, embedder_spec(spec()), embedder=True)
    assert 208 < embedder.mib < 208 * 1.25
    assert (embedder.slots, embedder.ctx) == (1, 256)


def test_what_is_shown_adds_up() -> None:
    need = estimate(SMOL, spec())
    assert sum(part.mib for part in need.components) == need.mib
    assert {part.name for part in need.components} == {"weights", "kv", "compute", "overhead", "margin"}


def test_context() -> None:
    assert effective_ctx(SMOL, spec(ctx=0)) == 4096
    assert effective_ctx(but(SMOL, context_length=1024), spec(ctx=0)) == 1024
    assert effective_ctx(SMOL, spec(ctx=16_384)) == 16_384
    assert estimate(SMOL, spec(ctx=513)).kv == estimate(SMOL, spec(ctx=768)).kv


def test_projector_draft_and_gpus() -> None:
    plain = estimate(SMOL, spec())
    projector = but(SMOL, architecture=safe_text("clip"), tensor_bytes=100 * MIB)
    assert estimate(SMOL, spec(), projector=projector).projector > 100 * MIB
    assert estimate(SMOL, spec(), draft=SMOL).draft == plain.weights + plain.kv + plain.compute
    two = estimate(SMOL, spec(), gpus=2)
    assert two.compute == 2 * plain.compute
    assert two.overhead == CPU_OVERHEAD + 2 * GPU_OVERHEAD


def test_measured_figures_replace_the_estimate() -> None:
    seen = Measured(
        ctx=2048,
        slots=4,
        kv_k="f16",
        kv_v="f16",
        weights=93 * MIB,
        kv=180 * MIB,
        compute=20 * MIB,
        peak=330 * MIB,
    )
    need = estimate(SMOL, spec(), measured=seen)
    assert need.measured
    assert (need.weights, need.kv, need.compute, need.overhead) == (93 * MIB, 180 * MIB, 20 * MIB, 37 * MIB)
    # Other settings: only the weights still hold.
    other = estimate(SMOL, spec(slots=2), measured=seen)
    assert not other.measured
    assert other.weights == 93 * MIB
    assert other.kv == estimate(SMOL, spec(slots=2)).kv


SEEN = Measured(
    ctx=2048, slots=4, kv_k="f16", kv_v="f16", weights=93 * MIB, kv=180 * MIB, compute=4 * MIB,
    peak=291 * MIB,
)  # fmt: skip


def test_a_measurement_of_other_settings_corrects_the_estimate() -> None:
    plain, other = estimate(SMOL, spec(slots=2)), estimate(SMOL, spec(slots=2), measured=SEEN)
    assert other.kv == plain.kv  # the cache is exact in both
    assert other.compute < plain.compute  # the engine took less than the formula says
    assert other.overhead == 14 * MIB
    assert not other.measured


@settings(max_examples=200, deadline=None)
@given(
    slots=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    cells=st.tuples(st.integers(1, 16), st.integers(1, 16)),
    compute=st.integers(1, 60),
    kv=st.integers(0, 300),
    peak=st.integers(0, 500),
)
def test_a_smaller_run_never_needs_more(
    slots: tuple[int, int], cells: tuple[int, int], compute: int, kv: int, peak: int
) -> None:
    seen = Measured(
        ctx=2048, slots=4, kv_k="f16", kv_v="f16", kv=kv * MIB, compute=compute * MIB, peak=peak * MIB
    )
    small = spec(slots=min(slots), ctx=256 * min(cells))
    large = spec(slots=max(slots), ctx=256 * max(cells))
    assert estimate(SMOL, small, measured=seen).mib <= estimate(SMOL, large, measured=seen).mib


def test_a_header_that_is_no_model_is_refused() -> None:
    for header, says in (
        (but(SMOL, architecture=safe_text("clip")), "projector"),
        (but(SMOL, split_count=3), "only part 1 of 3"),
        (but(SMOL, block_count=0), "no language model"),
    ):
        with pytest.raises(LocalError, match=says) as caught:
            estimate(header, spec())
        assert caught.value.fault.code == "bad_model_file"


# --- caches of other kinds


def cache(header: GgufHeader, ctx: int = 4096, slots: int = 1) -> tuple[int, int]:
    got = cache_bytes(header, ctx, slots, "f16", "f16")
    return got.kv, got.recurrent


ROW = 3 * 64 * 2 * 2  # bytes of one token in one block


def test_kv_heads_per_block() -> None:
    heads = (3,) * 10 + (1,) * 20
    assert cache(but(SMOL, head_count_kv=heads))[0] == 4096 * (10 * ROW + 20 * ROW // 3)


def test_sliding_window() -> None:
    window = but(SMOL, sliding_window=512)
    full, part = 4096 * ROW, 768 * ROW
    assert cache(window)[0] == 30 * full  # no pattern known: all of it counts
    assert cache(but(window, swa_layers=(True,) * 15 + (False,) * 15))[0] == 15 * (full + part)
    assert cache(but(window, swa_layers=6))[0] == 5 * full + 25 * part
    assert cache(but(window, architecture=safe_text("gemma3")))[0] == 5 * full + 25 * part
    assert cache(but(window, swa_layers=0))[0] == 30 * part
    assert cache(but(window, swa_layers=0), ctx=512)[0] == 30 * 512 * ROW


def test_mla_keeps_no_values_and_shared_blocks_keep_nothing() -> None:
    assert cache(but(SMOL, mla=True))[0] == 30 * 4096 * ROW // 2
    assert cache(but(SMOL, shared_kv_layers=10))[0] == 20 * 4096 * ROW


def test_encoders_have_no_cache() -> None:
    assert cache(but(SMOL, architecture=safe_text("nomic-bert"))) == (0, 0)


def test_recurrent_and_hybrid() -> None:
    mamba = read_header(
        tiny(
            general__architecture="mamba",
            mamba__block_count=24,
            mamba__embedding_length=768,
            mamba__attention__head_count=0,
            mamba__ssm__conv_kernel=4,
            mamba__ssm__inner_size=1536,
            mamba__ssm__state_size=16,
        )
    )
    state = (3 * 1536 + 16 * 1536) * 4
    assert cache(mamba, slots=2) == (0, 24 * 2 * state)
    hybrid = but(SMOL, recurrence=mamba.recurrence)
    assert cache(hybrid) == (30 * 4096 * ROW, 30 * state)  # the file tells nothing: both
    by_heads = but(hybrid, head_count_kv=(0,) * 27 + (3,) * 3)
    assert cache(by_heads) == (3 * 4096 * ROW, 27 * state)


def test_no_head_counts_takes_the_block_width() -> None:
    assert cache(but(SMOL, head_count_kv=0))[0] == 30 * 4096 * 576 * 2 * 2


# --- the report


def test_it_fits() -> None:
    report = fit(spec(), SMOL, host(5000, 8000))
    assert (report.fits, report.ever_fits, report.constraint) == (True, True, "")
    assert report.suggestion is None
    assert (report.ctx, report.slots, report.total_mib) == (2048, 4, 8000)


def test_the_last_mib_decides() -> None:
    need = estimate(SMOL, spec()).mib
    assert fit(spec(), SMOL, host(need)).fits
    tight = HostMemory((Device("memory", "ram", 9000 * MIB, need * MIB - 1),))
    report = fit(spec(), SMOL, tight)
    assert not report.fits
    assert report.free_mib == need - 1
    assert report.constraint == "free"


def test_idle_models_go_by_themselves_and_pinned_ones_are_suggested() -> None:
    idle = LoadedModel("idle", 400 * MIB, 1.0)
    report = fit(spec(), SMOL, host(10, 1000), loaded=[idle])
    assert report.fits
    assert report.unloads == ("idle",)
    pinned = LoadedModel("kept", 400 * MIB, 1.0, pinned=True)
    report = fit(spec(), SMOL, host(10, 1000), loaded=[pinned])
    assert not report.fits
    assert report.ever_fits
    assert report.suggestion is not None
    assert (report.suggestion.change, report.suggestion.unload) == ("unload", ("kept",))


def test_the_model_itself_is_not_in_its_own_way() -> None:
    itself = LoadedModel("smol", 400 * MIB, 1.0)
    assert not fit(spec(), SMOL, host(10, 1000), loaded=[itself]).unloads


def test_more_than_there_is() -> None:
    report = fit(spec(), SMOL, host(50, 100))
    assert (report.fits, report.ever_fits, report.constraint) == (False, False, "total")
    assert report.suggestion is not None
    assert report.suggestion.sentence.endswith("of memory, or pick a smaller or more quantised model")
    assert not report.settings_help
    assert fit(spec(), SMOL, host(300, 340)).settings_help


def test_large_needs_are_said_in_one_unit() -> None:
    large = but(SMOL, tensor_bytes=20_000 * MIB)
    report = fit(spec(), large, host(5_000, 9_000))
    assert report.suggestion is not None
    for text in (report.reason, report.suggestion.sentence):
        assert "GiB" in text and "MiB" not in text
    assert '"smol" needs 19.79 GiB' in report.reason


def test_gpus_are_taken_as_few_as_do() -> None:
    gpus = [Device(f"gpu{n}", "gpu", 1200 * MIB, 1200 * MIB) for n in range(2)]
    ram = Device("memory", "ram", 64_000 * MIB, 64_000 * MIB)
    one = fit(spec(), SMOL, HostMemory((ram, *gpus)))
    assert one.need_mib == estimate(SMOL, spec(), gpus=1).mib
    large = but(SMOL, tensor_bytes=700 * MIB)
    two = fit(spec(spill=False), large, HostMemory((ram, *gpus)))
    assert two.fits
    assert two.need_mib == estimate(large, spec(), gpus=2).mib
    huge = but(SMOL, tensor_bytes=5000 * MIB)
    assert not fit(spec(spill=False), huge, HostMemory((ram, *gpus))).ever_fits
    spilled = fit(spec(), huge, HostMemory((ram, *gpus)))
    assert spilled.fits
    assert spilled.spill_mib == spilled.need_mib - 2400


def test_the_report_is_json() -> None:
    raw = msgspec.json.encode(fit(spec(), SMOL, host(100, 9000)))
    assert msgspec.json.decode(raw, type=FitReport).suggestion is not None
    assert {"name": "weights", "mib": 93} in msgspec.json.decode(raw)["components"]
