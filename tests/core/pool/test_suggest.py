"""Suggestions: the smallest change that helps, and that each of them is true."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relaydesk.core.pool.eviction import LoadedModel
from relaydesk.core.pool.fit import FitReport, fit
from relaydesk.core.pool.memory import MIB, Device, HostMemory
from relaydesk.core.pool.model import KvType, ModelSpec
from relaydesk.core.pool.suggest import SETTING
from tests.core.pool.test_fit import SMOL, but, host, spec


@pytest.mark.parametrize(
    ("free", "change"),
    [
        (354, "kv"),
        (264, "slots"),
        (214, "kv+slots"),
        (184, "kv+slots+ctx"),
        (182, "kv+slots+ctx"),
        (170, "kv+slots+ctx+memory"),
    ],
)
def test_the_smallest_change(free: int, change: str) -> None:
    report = fit(spec(), SMOL, host(free, 9000))
    assert report.suggestion is not None
    assert report.suggestion.change == change
    sentence = report.suggestion.sentence
    assert ("KV cache as q" in sentence) == ("kv" in change)
    assert ("at once (now 4)" in sentence) == ("slots" in change)
    assert ("tokens of context (now 2048)" in sentence) == ("ctx" in change)
    assert ("MiB of memory" in sentence) == ("memory" in change)


def test_it_says_what_is_now() -> None:
    found = fit(spec(), SMOL, host(270, 9000)).suggestion
    assert found is not None
    assert found.sentence == (
        f"answer at most 2 requests at once (now 4): it then needs {found.need_mib} MiB and fits"
    )
    mixed = fit(spec(kv_k="q4_0"), SMOL, host(280, 9000)).suggestion
    assert mixed is not None
    assert "keep its KV cache as q4_0 and q8_0 (now q4_0 and f16)" in mixed.sentence


def test_settings_that_spare_little_are_not_traded_for_memory() -> None:
    large = but(SMOL, tensor_bytes=4000 * MIB)
    report = fit(spec(), large, host(1000, 9000))
    assert report.suggestion is not None
    assert report.suggestion.change == "memory"
    assert report.suggestion.sentence.startswith(f"free {report.need_mib - 1000} MiB of memory, or pick")
    never = fit(spec(), large, host(1000, 1000))
    assert never.suggestion is not None
    assert never.suggestion.sentence.startswith(f"add {report.need_mib - 1000} MiB")


def test_a_limit_of_ours_is_raised_by_its_name() -> None:
    pretended = HostMemory((Device(SETTING, "ram", 100 * MIB, 100 * MIB),))
    large = but(SMOL, tensor_bytes=4000 * MIB)
    report = fit(spec(), large, pretended)
    assert report.suggestion is not None
    assert f"raise RELAY_HOST_MEMORY_MB to {report.need_mib} (now 100)" in report.suggestion.sentence


def test_no_suggestion_is_beyond_what_the_model_was_trained_for() -> None:
    asked = fit(spec(ctx=16_384), SMOL, host(1500, 9000))
    assert not asked.fits
    assert asked.trained_ctx == 8192
    assert asked.suggestion is not None
    assert (asked.suggestion.change, asked.suggestion.ctx) == ("ctx", 8192)
    tighter = fit(spec(ctx=16_384), SMOL, host(700, 9000)).suggestion
    assert tighter is not None
    assert (tighter.change, tighter.ctx) == ("kv+ctx", 8192)


def test_a_cache_whose_heads_do_not_allow_it_stays() -> None:
    odd = but(SMOL, key_length=80, value_length=80)
    found = fit(spec(), odd, host(354, 9000)).suggestion
    assert found is not None
    assert (found.change, found.kv_k) == ("slots", "f16")


def test_unloading_and_a_setting_together() -> None:
    kept = LoadedModel("kept", 100 * MIB, 1.0, pinned=True)
    found = fit(spec(), SMOL, host(100, 1000), loaded=[kept]).suggestion
    assert found is not None
    assert (found.change, found.unload) == ("unload+kv+slots", ("kept",))
    assert found.sentence.startswith("unload kept, idle but kept loaded, keep its KV cache as")


def _apply(report: FitReport, base: ModelSpec) -> ModelSpec:
    assert report.suggestion is not None
    change = report.suggestion
    return msgspec.structs.replace(
        base, ctx=change.ctx, slots=change.slots, kv_k=change.kv_k, kv_v=change.kv_v
    )


kv_types: st.SearchStrategy[KvType] = st.sampled_from(["f16", "bf16", "f32", "q8_0", "q4_0"])


@example(free=0, more=0, ctx=8193, slots=1, kv="q8_0", pinned=0, idle=0)  # one token beyond its training
@settings(max_examples=200, deadline=None)
@given(
    free=st.integers(0, 900),
    more=st.integers(0, 600),
    ctx=st.integers(1, 20_000),
    slots=st.integers(1, 12),
    kv=kv_types,
    pinned=st.integers(0, 300),
    idle=st.integers(0, 100),
)
def test_every_suggestion_is_true(
    free: int, more: int, ctx: int, slots: int, kv: KvType, pinned: int, idle: int
) -> None:
    loaded = [
        LoadedModel("kept", pinned * MIB, 1.0, pinned=True),
        LoadedModel("idle", idle * MIB + 17, 2.0),
    ]
    base = spec(ctx=ctx, slots=slots, kv_k=kv, kv_v=kv)
    total = free + more + pinned + idle + 1
    report = fit(base, SMOL, host(free, total), loaded=loaded)
    assert report.need_mib == sum(part.mib for part in report.components)
    assert report.fits == (report.constraint == "")
    if report.fits:
        assert report.suggestion is None
        return
    change = report.suggestion
    assert change is not None
    changed = _apply(report, base)
    gone = sum(item.bytes for item in loaded if item.name in change.unload) // MIB
    kept = [item for item in loaded if item.name not in change.unload]

    def again(spec: ModelSpec, more_mib: int) -> FitReport:
        return fit(spec, SMOL, host(free + gone + more_mib, total + more_mib), loaded=kept)

    done = again(changed, change.more_mib)
    assert done.fits
    assert done.need_mib == change.need_mib <= report.need_mib
    assert change.ctx <= max(8192, min(ctx, 8192))
    if change.more_mib:
        assert not again(changed, change.more_mib - 1).fits
    if "memory" not in change.change:
        assert report.settings_help or change.change == "unload"
    if change.change == "slots":
        assert not again(msgspec.structs.replace(changed, slots=change.slots + 1), 0).fits
    if change.change == "ctx" and ctx <= 8192:
        longer = msgspec.structs.replace(changed, ctx=change.ctx + 256)
        assert change.ctx + 256 >= ctx or not again(longer, 0).fits


def test_room_that_is_in_use_is_waited_for_and_no_setting_is_given_up() -> None:
    busy = LoadedModel("busy", 400 * MIB, 1.0, in_flight=2)
    report = fit(spec(), SMOL, host(100, 600), loaded=[busy])
    assert report.suggestion is not None
    assert report.suggestion.change == "wait"
    assert report.suggestion.sentence == ("wait until busy falls idle: a request for smol does so by itself")
    now = spec()
    found = report.suggestion
    assert (found.slots, found.kv_k, found.kv_v, found.unload) == (now.slots, now.kv_k, now.kv_v, ())
