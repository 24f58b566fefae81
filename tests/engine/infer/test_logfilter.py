from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.engine.infer.logfilter import LINE_LIMIT, LogFilter
from relaydesk.engine.infer.spec import EngineSpec

SPEC = EngineSpec(model_path="/srv/models/m.gguf", alias="m", ctx_total=2048)
LOAD = b"""\
0.00.003.004 I srv  init_listene: api_keys: ****k
0.00.004.929 I srv    load_model: loading model '/srv/models/m.gguf'
0.00.331.668 I llama_model_loader: loaded meta data with 33 key-value pairs and 272 tensors from /srv/m.gguf
0.00.547.583 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
0.00.561.051 I load_tensors:   CPU_Mapped model buffer size =    92.10 MiB
0.00.565.563 I llama_context:        CPU  output buffer size =     0.76 MiB
0.00.565.738 I llama_kv_cache:        CPU KV buffer size =    45.00 MiB
0.00.601.719 I llama_kv_cache: size =   45.00 MiB (   512 cells,  30 layers,  4/4 seqs), K (f16):   22.50 MiB
0.00.608.196 I sched_reserve:        CPU compute buffer size =    51.08 MiB
0.00.608.332 I cmn  common_init_: warming up the model with an empty run - please wait ... (--no-warmup)
0.00.679.467 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 512, kv_unified = 'false'
0.00.682.383 I srv          init: init: chat template, example_format: '<|im_start|>system
You are a helpful assistant<|im_end|>
'
0.00.682.639 I srv          init: model loaded
"""
HEAD = b"0.01.756.445 I slot print_timing: id  1 | task 0 | "


def serving() -> LogFilter:
    keep = LogFilter(SPEC)
    keep.serving = True
    return keep


def test_a_load_tells_its_figures_and_stages() -> None:
    events = LogFilter(SPEC).feed(LOAD)
    buffers = {(e.buffer.device, e.buffer.kind): e.buffer.size_bytes for e in events if e.buffer}
    assert buffers == {
        ("CPU_Mapped", "model"): round(92.10 * 2**20),
        ("CPU", "output"): round(0.76 * 2**20),
        ("CPU", "kv"): 45 * 2**20,
        ("CPU", "compute"): round(51.08 * 2**20),
    }
    assert [(e.slots, e.ctx_slot) for e in events if e.slots] == [(4, 512)]
    assert [e.stage for e in events if e.stage] == ["reading", "loading", "warming"]
    told = " ".join(e.text for e in events)
    assert "****" not in told and "helpful" not in told and "/srv" not in told


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, len(LOAD)), max_size=20))
def test_lines_are_the_same_however_they_are_cut(places: list[int]) -> None:
    edges = [0, *sorted(places), len(LOAD)]
    keep = LogFilter(SPEC)
    got = [e for a, b in pairwise(edges) for e in keep.feed(LOAD[a:b])]
    assert got == LogFilter(SPEC).feed(LOAD)


SHAPES = [
    "{}",
    "prompt eval time = {} ms / 3 tokens",
    "error loading model: {}",
    "failed to load model {}",
    "stop processing: n_tokens = {}, truncated = 0",
    "CUDA error: {}",
    "model loaded{}",
    "terminate called after throwing an instance of '{}'",
    "{} model buffer size =    92.10 MiB",
    "ggml_aligned_malloc: insufficient memory (attempted to allocate {} MB)",
]


def test_short_memory_is_heard_of_while_it_serves() -> None:
    (event,) = serving().feed(b"ggml_aligned_malloc: insufficient memory (attempted to allocate 412.50 MB)\n")
    assert event.text.endswith("insufficient memory (attempted to allocate 412.50 MB)")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.sampled_from(SHAPES), st.booleans(), st.sampled_from("IWED"))
def test_while_it_serves_no_word_of_a_request_passes(text: str, shape: str, headed: bool, level: str) -> None:
    said = shape.format("Xq" + text + "Zw").encode("utf-8", "replace")
    head = HEAD.replace(b" I ", b" %b " % level.encode()) if headed else b""
    events = serving().feed(head + said + b"\n" + said + b"\n")
    assert not [event for event in events if "Xq" in event.text or "Zw" in event.text]


def test_a_source_line_passes_without_the_asserted_words() -> None:
    event = serving().feed(b"/build/ggml/src/ggml-cuda.cu:88: GGML_ASSERT(secret == 1) failed\n")[0]
    assert (event.kind, event.text) == ("error", "the engine stopped itself at ggml-cuda.cu:88")


def test_timings_pass_while_it_serves() -> None:
    line = (
        b"prompt eval time =     233.00 ms /    37 tokens (    6.30 ms per token,   158.80 tokens per second)"
    )
    assert [event.kind for event in serving().feed(HEAD + line + b"\n")] == ["note"]


def test_an_error_while_loading_passes_without_the_path() -> None:
    line = b"0.00.005.051 E cmn  common_init_: failed to load model '/srv/models/m.gguf' \x1b[31m\n"
    assert [event.text for event in LogFilter(SPEC).feed(line)] == ["failed to load model 'm.gguf' [31m"]


@pytest.mark.parametrize("size", [LINE_LIMIT + 1, 40 * LINE_LIMIT])
def test_a_line_too_long_is_dropped_whole(size: int) -> None:
    keep = LogFilter(SPEC)
    stream = b"x" * size + b"0.0 model loaded\n0.00.682.639 I srv          init: model loaded\n"
    got = [event for at in range(0, len(stream), 1000) for event in keep.feed(stream[at : at + 1000])]
    assert [event.text for event in got] == ["model loaded"]
    assert keep.dropped == 1


def test_after_a_gap_the_rest_of_a_line_is_not_taken_for_a_line() -> None:
    keep = LogFilter(SPEC)
    keep.feed(b"0.00.1")
    keep.gap()
    assert keep.feed(b"model loaded\n") == []
    assert [event.text for event in keep.feed(b"model loaded\n")] == ["model loaded"]


def test_a_flood_is_looked_at_in_part() -> None:
    keep = LogFilter(SPEC)
    assert len(keep.feed(b"model loaded\n" * 2000)) == 512
    assert keep.dropped == 2000 - 512
