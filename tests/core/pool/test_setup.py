from __future__ import annotations

from dataclasses import replace

import pytest

from relaydesk.core.errors import LocalError
from relaydesk.core.ids import parse_model_name
from relaydesk.core.pool.gguf import GgufHeader, read_header
from relaydesk.core.pool.kvcache import N_UBATCH
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.need import Subject, estimate
from relaydesk.core.pool.setup import (
    WRITES,
    EngineSetup,
    can_embed,
    can_write,
    embedder_spec,
    engine_setup,
    is_embedding_model,
)
from relaydesk.core.text import safe_text
from tests.support.gguf_builder import tiny

HEADER = read_header(tiny())


def of(architecture: str = "llama", pooling: str = "", causal: bool = True) -> GgufHeader:
    return replace(HEADER, architecture=safe_text(architecture), pooling=pooling, causal=causal)


@pytest.mark.parametrize(
    ("header", "writes", "embeds", "embedding_model"),
    [
        (of(), True, True, False),
        (of(pooling="none"), True, True, False),
        (of("qwen3", pooling="last"), False, True, True),
        (of("bert", pooling="cls", causal=False), False, True, True),
        (of("bert"), False, True, True),
        (of("gemma-embedding", pooling="mean", causal=False), False, True, True),
        (of("bert", pooling="rank"), False, False, True),
        (of("qwen3", pooling="rank"), False, False, False),
        (of("llada", causal=False), True, False, False),
    ],
)
def test_what_a_file_can_do(header: GgufHeader, writes: bool, embeds: bool, embedding_model: bool) -> None:
    assert (can_write(header), can_embed(header)) == (writes, embeds)
    assert is_embedding_model(header) is embedding_model


def test_an_engine_that_writes_has_small_batches_and_does_not_embed() -> None:
    assert engine_setup(of(), 8192) == WRITES == EngineSetup(N_UBATCH, "")
    assert not WRITES.embeds


def test_an_embedder_reads_pieces() -> None:
    assert engine_setup(of(), 256, embedder=True) == EngineSetup(N_UBATCH, "mean")


@pytest.mark.parametrize(
    ("header", "batch"),
    [
        (of("bert", pooling="cls", causal=False), 512),
        (of("qwen3", pooling="mean"), 512),
        (of("gemma-embedding", pooling="last", causal=False), 512),
        # Where only the last token counts, and sees those before it, batches stay small.
        (of("qwen3", pooling="last"), N_UBATCH),
    ],
)
def test_what_is_pooled_over_all_tokens_is_computed_at_once(header: GgufHeader, batch: int) -> None:
    assert engine_setup(header, 500) == EngineSetup(batch, "file")


def test_an_embedder_is_small_and_beside_the_model() -> None:
    spec = ModelSpec(
        name="a/b:q4", path="/m.gguf", ctx=8192, slots=4, gpu_layers=-1, draft="/d.gguf", keep_alive_s=60
    )
    made = embedder_spec(spec)
    assert (made.slots, made.ctx, made.gpu_layers, made.draft) == (1, 256, 0, "")
    assert (made.path, made.keep_alive_s) == ("/m.gguf", 60)
    with pytest.raises(LocalError):
        parse_model_name(made.name)  # so that no model can be called like it


def test_a_subject_knows_its_setup() -> None:
    spec = ModelSpec(name="m", path="/m", ctx=2048, slots=2)
    writes = Subject(spec=spec, header=HEADER)
    embeds = Subject(spec=embedder_spec(spec), header=HEADER, embedder=True)
    assert (writes.setup, embeds.setup) == (WRITES, EngineSetup(N_UBATCH, "mean"))
    assert estimate(HEADER, spec, embedder=True).compute > estimate(HEADER, spec).compute


def test_encoders_compute_nothing_for_each_word_of_their_vocabulary() -> None:
    spec = ModelSpec(name="m", path="/m", ctx=512, slots=1)
    wide = replace(HEADER, vocab_size=100_000)
    encoder = estimate(replace(wide, architecture=safe_text("bert"), pooling="cls"), spec)
    decoder = estimate(replace(wide, pooling="mean"), spec)
    assert encoder.kv == 0
    assert decoder.compute - encoder.compute > 2 * 512 * 4 * 99_000
