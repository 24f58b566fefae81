"""How many bytes the KV cache and the recurrent state of a model take.

Per attending block and token the cache holds one key and one value row: heads times head length, in the
chosen types. Four things make it smaller and are counted where the file says so: blocks with a sliding window
keep only the window and one micro-batch; compressed attention (MLA) keeps no values; blocks that share
another's cache keep nothing; recurrent blocks keep a state of fixed size per slot instead. Where a file
leaves something open, the larger reading is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relaydesk.core.pool.ggml import KV_TYPES
from relaydesk.core.pool.gguf import GgufHeader
from relaydesk.core.pool.model import KvType

N_UBATCH: Final = 128  # tokens an engine that writes computes at once; workers are started with it
CELLS: Final = 256  # the engine rounds every slot's context up to a multiple of this
_STATE_BYTES: Final = 4  # recurrent state is always f32

# Engines know the period of these architectures where the file does not name it: every n-th block sees all.
_SWA_PERIODS: Final[dict[str, int]] = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "cohere2": 4,
    "exaone4": 4,
    "olmo2": 4,
}
# Encoders and diffusion models: the engine makes no cache for them.
_CACHELESS: Final = frozenset(
    {"bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3"}
    | {"eurobert", "gemma-embedding", "dream", "llada", "llada-moe", "rnd1", "wavtokenizer-dec"}
)


@dataclass(frozen=True, slots=True)
class CacheBytes:
    """``kv`` grows with context and slots, ``recurrent`` with slots alone."""

    kv: int
    recurrent: int


def round_up_ctx(ctx: int) -> int:
    """A slot's context as the engine allocates it."""
    return -(-ctx // CELLS) * CELLS


def cache_bytes(
    header: GgufHeader, ctx: int, slots: int, kv_k: KvType, kv_v: KvType, batch: int = N_UBATCH
) -> CacheBytes:
    """The cache of ``slots`` slots with ``ctx`` tokens each, computed ``batch`` tokens at once."""
    if header.architecture in _CACHELESS:
        return CacheBytes(0, 0)
    cells = round_up_ctx(ctx)
    window_cells = min(cells, round_up_ctx(header.sliding_window + batch))
    recurrent = _recurrent_blocks(header)
    pure = header.recurrence.present and not _heads(header)
    kv = 0
    for block in range(header.block_count - min(header.shared_kv_layers, header.block_count)):
        attends = not pure and (not recurrent[block] or _both(header, recurrent))
        if attends:
            windowed = _is_windowed(header, block)
            row = _row_bytes(header, block, windowed, kv_k, kv_v)
            kv += row * (window_cells if windowed else cells)
    state = _state_elements(header) * _STATE_BYTES * sum(recurrent)
    return CacheBytes(kv * slots, state * slots)


def _heads(header: GgufHeader) -> int:
    heads = header.head_count_kv
    return max(heads) if isinstance(heads, tuple) else heads


def _heads_of(header: GgufHeader, block: int) -> int | None:
    """KV heads of one block; None where the file does not say."""
    heads = header.head_count_kv
    if isinstance(heads, tuple):
        return heads[block] if block < len(heads) else max(heads)
    return heads or None


def _row_bytes(header: GgufHeader, block: int, windowed: bool, kv_k: KvType, kv_v: KvType) -> int:
    heads = _heads_of(header, block)
    if heads is None:
        # No head counts: a block can hold no more than its own width, for keys and for values.
        keys = values = header.embedding_length
    else:
        keys = heads * (header.key_length_swa if windowed else header.key_length)
        values = heads * (header.value_length_swa if windowed else header.value_length)
    if header.mla:
        values = 0
    return KV_TYPES[kv_k].row_bytes(keys) + KV_TYPES[kv_v].row_bytes(values)


def _is_windowed(header: GgufHeader, block: int) -> bool:
    pattern = header.swa_layers
    if not header.sliding_window:
        return False
    if isinstance(pattern, tuple):
        return pattern[block % len(pattern)]
    # A window without a pattern is ignored by the engine for most architectures: then all of it counts.
    period = pattern if pattern is not None else _SWA_PERIODS.get(header.architecture, 1)
    return period == 0 or block % period < period - 1


def _recurrent_blocks(header: GgufHeader) -> tuple[bool, ...]:
    """Which blocks keep a recurrent state."""
    count, kept = header.block_count, header.recurrence
    if not kept.present:
        return (False,) * count
    if kept.layers:
        return tuple(kept.layers[block] if block < len(kept.layers) else True for block in range(count))
    if kept.attention_every:
        return tuple((block + 1) % kept.attention_every != 0 for block in range(count))
    if isinstance(header.head_count_kv, tuple) and 0 in header.head_count_kv:
        return tuple(_heads_of(header, block) == 0 for block in range(count))
    return (True,) * count


def _both(header: GgufHeader, recurrent: tuple[bool, ...]) -> bool:
    """Every block may both attend and recur: so it is in some hybrids, and the file does not tell."""
    return all(recurrent) and bool(_heads(header))


def _state_elements(header: GgufHeader) -> int:
    """Numbers of state per recurrent block and slot: the convolution's last inputs and the state proper."""
    kept, width = header.recurrence, header.embedding_length
    if kept.wkv_head_size:
        return (kept.token_shift or 2) * width + width * kept.wkv_head_size
    if kept.short_conv:
        return width * (kept.short_conv - 1)
    conv = max(0, kept.conv_kernel - 1)
    if kept.kda_head_dim:
        heads = max(header.head_count) if isinstance(header.head_count, tuple) else header.head_count
        inner = max(heads, kept.group_count) * kept.kda_head_dim
        return 3 * (conv or 3) * inner + inner * kept.kda_head_dim
    conv_inputs = conv * (kept.inner_size + 2 * kept.group_count * kept.state_size)
    return conv_inputs + kept.state_size * kept.inner_size
