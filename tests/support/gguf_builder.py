"""Writes small GGUF files for tests: valid ones, and wrong ones on purpose."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q"}
_FORMATS[F64] = "d"


@dataclass(frozen=True)
class Raw:
    """A value written as it is: for what no honest writer would write."""

    kind: int
    payload: bytes


@dataclass(frozen=True)
class Tensor:
    """One tensor; ``stored`` bytes of zeros are written for it."""

    name: str
    shape: tuple[int, ...]
    kind: int = 0
    stored: int | None = None
    offset: int | None = None

    @property
    def size(self) -> int:
        """F32 unless told."""
        if self.stored is not None:
            return self.stored
        count = 4
        for extent in self.shape:
            count *= extent
        return count


def text(value: str | bytes) -> bytes:
    """GGUF's string: length and bytes."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def array(kind: int, items: Sequence[object]) -> Raw:
    """An array of one kind."""
    if kind == STRING:
        body = b"".join(text(item) for item in items if isinstance(item, str | bytes))
    else:
        body = b"".join(struct.pack("<" + _FORMATS[kind], item) for item in items)
    return Raw(ARRAY, struct.pack("<IQ", kind, len(items)) + body)


def value(item: object) -> Raw:
    """A Python value as the kind a converter would write."""
    if isinstance(item, Raw):
        return item
    if isinstance(item, bool):
        return Raw(BOOL, struct.pack("<?", item))
    if isinstance(item, int):
        return Raw(U32, struct.pack("<I", item)) if item >= 0 else Raw(I32, struct.pack("<i", item))
    if isinstance(item, float):
        return Raw(F32, struct.pack("<f", item))
    if isinstance(item, str | bytes):
        return Raw(STRING, text(item))
    raise TypeError(type(item))


def build(
    metadata: Mapping[str, object] | Sequence[tuple[str, object]],
    tensors: Sequence[Tensor] = (),
    *,
    version: int = 3,
    alignment: int = 32,
    keys: int | None = None,
    count: int | None = None,
) -> bytes:
    """A whole file. ``keys`` and ``count`` lie about the number of keys and tensors."""
    pairs = list(metadata.items()) if isinstance(metadata, Mapping) else list(metadata)
    out = [b"GGUF", struct.pack("<I", version)]
    out.append(
        struct.pack("<QQ", len(tensors) if count is None else count, len(pairs) if keys is None else keys)
    )
    for key, item in pairs:
        raw = value(item)
        out += [text(key), struct.pack("<I", raw.kind), raw.payload]
    offset = 0
    for tensor in tensors:
        place = offset if tensor.offset is None else tensor.offset
        out += [text(tensor.name), struct.pack("<I", len(tensor.shape))]
        out += [struct.pack("<Q", extent) for extent in tensor.shape]
        out.append(struct.pack("<IQ", tensor.kind, place))
        offset += -(-tensor.size // alignment) * alignment
    head = b"".join(out)
    if not tensors:
        return head
    return head + bytes(-len(head) % alignment) + bytes(offset)


LLAMA: dict[str, object] = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "general.file_type": 0,
    "llama.block_count": 2,
    "llama.context_length": 8192,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": array(STRING, ["a", "b", "", "dd"]),
    "tokenizer.ggml.token_type": array(I32, [1, 1, 3, 1]),
    "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
}
TENSORS: tuple[Tensor, ...] = (
    Tensor("token_embd.weight", (64, 4)),
    Tensor("blk.0.attn_q.weight", (64, 64)),
    Tensor("blk.1.attn_q.weight", (64, 64), kind=8, stored=64 * 64 // 32 * 34),
    Tensor("output.weight", (64, 4), kind=1, stored=64 * 4 * 2),
)


def tiny(**changes: object) -> bytes:
    """A valid small model; ``changes`` with ``__`` for ``.`` replace or, where None, drop keys."""
    metadata = dict(LLAMA)
    for name, item in changes.items():
        key = name.replace("__", ".")
        if item is None:
            metadata.pop(key, None)
        else:
            metadata[key] = item
    return build(metadata, TENSORS)


def with_numbers(data: bytes, numbers: Mapping[str, int]) -> bytes:
    """A file with further metadata keys. What is put in is a multiple of any usual alignment long."""
    added = b"".join(text(key) + struct.pack("<II", U32, number) for key, number in numbers.items())
    filler = text("test.filler") + struct.pack("<I", STRING)
    added += filler + text("x" * (-(len(added) + len(filler) + 8) % 4096))
    (keys,) = struct.unpack_from("<Q", data, 16)
    return data[:16] + struct.pack("<Q", keys + len(numbers) + 1) + added + data[24:]
