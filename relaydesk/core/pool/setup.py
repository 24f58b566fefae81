"""What an engine is started for: to write, or to embed.

One engine does one of the two. An engine that does both lets whoever embeds wait until nobody writes, picks
the slot itself, so that one key's text ends up in another's prompt cache, and computes wrong vectors where
texts of unequal length meet in its slots. So a model that writes embeds in an engine of its own beside it (an
*embedder*), and whatever embeds has one slot.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.kvcache import CELLS, N_UBATCH, round_up_ctx
from relaydesk.core.pool.model import ModelSpec

# "": it writes. "mean" and "file": it embeds, by the mean over all tokens or as its file says.
Pooling = Literal["", "mean", "file"]

# A model's embedder is known by this behind its name; no model's name can hold it.
EMBEDDER: Final = " (embeddings)"
# Made to embed, and without a text of their own to write.
_ENCODERS: Final = frozenset(
    {"bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3"}
    | {"eurobert", "gemma-embedding", "t5encoder"}
)
# Of these no text gets a vector that means anything: audio, images, and models that draft a text as a whole.
_MUTE: Final = frozenset({"wavtokenizer-dec", "clip", "dream", "llada", "llada-moe", "rnd1", "t5"})
_POOLED: Final = ("mean", "cls", "last")


class EngineSetup(msgspec.Struct, frozen=True):
    """How an engine is started. ``batch`` is how many tokens it computes at once."""

    batch: int = N_UBATCH
    pooling: Pooling = ""

    @property
    def embeds(self) -> bool:
        """It embeds, and writes nothing."""
        return bool(self.pooling)


WRITES: Final = EngineSetup()


def is_embedding_model(header: GgufHeader) -> bool:
    """Made to embed, as its file says or its architecture tells: it writes nothing."""
    return header.pooling in _POOLED or header.architecture in _ENCODERS


def can_write(header: GgufHeader) -> bool:
    """It can continue a text."""
    return header.pooling != "rank" and not is_embedding_model(header)


def can_embed(header: GgufHeader) -> bool:
    """It can turn a text into a vector: itself, or by an embedder."""
    return header.pooling != "rank" and header.architecture not in _MUTE


def has_outputs(header: GgufHeader) -> bool:
    """It computes what comes next for each token: encoders do not."""
    return header.architecture not in _ENCODERS


def engine_setup(header: GgufHeader, ctx: int, *, embedder: bool = False) -> EngineSetup:
    """How an engine of ``ctx`` tokens a slot is started; ``embedder`` says that it only embeds.

    A text that is pooled over all its tokens has to be computed at once, because each batch replaces the
    result of the one before it. Where only the last token counts, batches stay small. An embedder is given
    texts in pieces of one batch.
    """
    if embedder:
        return EngineSetup(N_UBATCH, "mean")
    if not is_embedding_model(header):
        return WRITES
    in_batches = header.pooling == "last" and header.causal and has_outputs(header)
    return EngineSetup(N_UBATCH if in_batches else round_up_ctx(ctx), "file")


def embedder_spec(spec: ModelSpec) -> ModelSpec:
    """The specification of a model's embedder.

    It runs on the CPU, where it shares the mapped weights with an engine that writes there; a second copy on
    a GPU would drive the first one out, and the next chat the second.
    """
    return msgspec.structs.replace(
        spec,
        name=spec.name + EMBEDDER,
        aliases=(),
        ctx=CELLS,
        slots=1,
        kv_k="f16",
        kv_v="f16",
        template="",
        projector="",
        draft="",
        gpu_layers=0,
        preload=False,
    )
