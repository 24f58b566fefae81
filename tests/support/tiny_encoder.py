"""A small encoder with made-up weights: too small to mean anything, real to an engine."""

from __future__ import annotations

import random
import string
import struct

from tests.support.gguf_builder import F32, STRING, Tensor, array, build

WIDTH = 64
CONTEXT = 512
BLOCKS = 2
_HIDDEN = 128
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Words begin with the mark of the tokenizer that converters write; letters without it go on with a word.
VOCABULARY = [*_SPECIAL, *("▁" + letter for letter in string.ascii_lowercase), *string.ascii_lowercase]


def encoder(pooling: int = 1, seed: int = 1) -> bytes:
    """A GGUF file of BERT's architecture; ``pooling`` 1 is the mean over tokens, 2 the first one's state."""
    tensors = [
        Tensor("token_embd.weight", (WIDTH, len(VOCABULARY))),
        Tensor("token_types.weight", (WIDTH, 2)),
        Tensor("position_embd.weight", (WIDTH, CONTEXT)),
        *_norm("token_embd_norm"),
    ]
    for block in range(BLOCKS):
        at = f"blk.{block}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors += _linear(at + name, WIDTH, WIDTH)
        tensors += [
            *_norm(at + "attn_output_norm"),
            *_linear(at + "ffn_up", WIDTH, _HIDDEN),
            *_linear(at + "ffn_down", _HIDDEN, WIDTH),
            *_norm(at + "layer_output_norm"),
        ]
    metadata: dict[str, object] = {
        "general.architecture": "bert",
        "general.name": "Tiny encoder",
        "bert.block_count": BLOCKS,
        "bert.context_length": CONTEXT,
        "bert.embedding_length": WIDTH,
        "bert.feed_forward_length": _HIDDEN,
        "bert.attention.head_count": 2,
        "bert.attention.layer_norm_epsilon": 1e-6,
        "bert.attention.causal": False,
        "bert.pooling_type": pooling,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.tokens": array(STRING, VOCABULARY),
        "tokenizer.ggml.scores": array(F32, [-1000.0] * len(VOCABULARY)),
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 3,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.cls_token_id": 2,
        "tokenizer.ggml.seperator_token_id": 3,
        "tokenizer.ggml.mask_token_id": 4,
    }
    file = build(metadata, tensors)
    stored = sum(-(-tensor.size // 32) * 32 for tensor in tensors)
    made = random.Random(seed)
    numbers = [made.uniform(-0.5, 0.5) for _ in range(stored // 4)]
    return file[:-stored] + struct.pack(f"<{len(numbers)}f", *numbers)


def _linear(name: str, width: int, height: int) -> list[Tensor]:
    return [Tensor(name + ".weight", (width, height)), Tensor(name + ".bias", (height,))]


def _norm(name: str) -> list[Tensor]:
    return [Tensor(name + ".weight", (WIDTH,)), Tensor(name + ".bias", (WIDTH,))]
