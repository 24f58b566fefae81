"""What a GGUF file says about itself, read without trusting it (`gguf_reader` has the limits).

Files of version 2 and 3, little endian; the engines load no other. Everything wrong with a file is
`LocalError` ``bad_model_file``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.ggml import file_type_label
from relaydesk.core.pool.gguf_reader import (
    FETCH_AGAIN,
    MAX_KEYS,
    MAX_LAYERS,
    MAX_TENSORS,
    Cursor,
    Metadata,
    TensorTable,
    read_preamble,
    read_tensors,
)
from relaydesk.core.text import SafeText, safe_text

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NO_TEXT: Final = SafeText("")
MAX_PARTS: Final = 4_096
# A longer chat template is kept up to here; the engine reads its own copy.
MAX_TEMPLATE: Final = 64 * 1024
_OPENING: Final = re.compile(r"\{[%{]")
_TOOLS: Final = re.compile(r"\btools\b")
_THINKS: Final = re.compile(r"<think>|\b(?:enable_thinking|thinking|reasoning_content|reasoning_effort)\b")
# Tokens by which a model fills in the middle: what stands before, what stands behind, and the gap. First the
# keys that may name them, the new and the old; then what they are called where the file names none.
_INFILL: Final[tuple[tuple[tuple[str, str], tuple[bytes, ...]], ...]] = (
    (
        ("fim_pre", "prefix"),
        tuple(
            name.encode()
            for name in (
                "<|fim_prefix|>",
                "<fim-prefix>",
                "<fim_prefix>",
                "<｜fim▁begin｜>",
                "<PRE>",
                "▁<PRE>",
                "<|code_prefix|>",
                "<|prefix|>",
            )
        ),
    ),
    (
        ("fim_suf", "suffix"),
        tuple(
            name.encode()
            for name in (
                "<|fim_suffix|>",
                "<fim-suffix>",
                "<fim_suffix>",
                "<｜fim▁hole｜>",
                "<SUF>",
                "▁<SUF>",
                "<|code_suffix|>",
                "<|suffix|>",
            )
        ),
    ),
    (
        ("fim_mid", "middle"),
        tuple(
            name.encode()
            for name in (
                "<|fim_middle|>",
                "<fim-middle>",
                "<fim_middle>",
                "<｜fim▁end｜>",
                "<MID>",
                "▁<MID>",
                "<|code_middle|>",
                "<|middle|>",
            )
        ),
    ),
)
_INFILL_NAMES: Final = frozenset(name for _, names in _INFILL for name in names)
_TEMPLATE: Final = "tokenizer.chat_template"
_POOLING: Final = {-1: "", 0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"}


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Sizes of the fixed state that recurrent layers keep per sequence, as the file names them (0: absent).

    ``layers`` says per block whether it is recurrent, where the file lists it; else every
    ``attention_every``-th block attends and the others are recurrent, where that is above 0.
    """

    conv_kernel: int = 0
    inner_size: int = 0
    state_size: int = 0
    group_count: int = 0
    wkv_head_size: int = 0
    token_shift: int = 0
    short_conv: int = 0
    kda_head_dim: int = 0
    attention_every: int = 0
    layers: tuple[bool, ...] = ()

    @property
    def present(self) -> bool:
        """The model has recurrent layers."""
        return bool(self.inner_size or self.wkv_head_size or self.short_conv or self.kda_head_dim)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """One GGUF file, or several parts of a split one after `combine`.

    Numbers the file does not name are 0. Where the format allows one value per block, a field is an int for
    all blocks or a tuple with one for each. ``tensor_bytes`` counts tensors as stored, without padding.
    ``parameters`` counts their elements; ``template`` is the main chat template, cut at `MAX_TEMPLATE`.
    ``swa_layers`` (True: the block sees only the last ``sliding_window`` tokens) is a tuple, a period (every
    n-th block sees everything), or None where the file does not say.
    """

    version: int
    kind: SafeText  # general.type: "model", "mmproj", "adapter" or what else it says
    architecture: SafeText
    name: SafeText
    file_type: str
    file_bytes: int
    basename: SafeText = _NO_TEXT
    size_label: SafeText = _NO_TEXT
    license: SafeText = _NO_TEXT
    block_count: int = 0
    context_length: int = 0
    embedding_length: int = 0
    feed_forward_length: int = 0
    head_count: int | tuple[int, ...] = 0
    head_count_kv: int | tuple[int, ...] = 0
    key_length: int = 0
    value_length: int = 0
    key_length_swa: int = 0
    value_length_swa: int = 0
    mla: bool = False
    shared_kv_layers: int = 0
    vocab_size: int = 0
    sliding_window: int = 0
    swa_layers: tuple[bool, ...] | int | None = None
    expert_count: int = 0
    expert_used_count: int = 0
    expert_feed_forward_length: int = 0
    recurrence: Recurrence = field(default_factory=Recurrence)
    causal: bool = True
    pooling: str = ""
    tokenizer: SafeText = _NO_TEXT
    has_template: bool = False
    template: str = field(default="", repr=False)
    template_sha256: str = ""
    template_speaks_tools: bool = False
    template_thinks: bool = False
    infill_tokens: tuple[int, int, int] | None = None
    split_no: int = 0
    split_count: int = 1
    split_tensors: int = 0
    tensor_count: int = 0
    parameters: int = 0
    tensor_bytes: int = 0
    token_embd_bytes: int = 0
    output_bytes: int = 0

    @property
    def is_projector(self) -> bool:
        """An image or audio encoder that goes beside a model, not a model."""
        return self.kind == "mmproj" or self.architecture == "clip"

    @property
    def infills(self) -> bool:
        """It can fill in the middle: `infill_tokens` are what stands before, what stands behind, the gap."""
        return self.infill_tokens is not None


def read_header(data: ReadableBuffer, size: int | None = None, *, what: str = "the model file") -> GgufHeader:
    """Read the header of a GGUF file.

    ``data`` is the file (an mmap will do) or its beginning, ``size`` the size of the whole file in bytes
    where ``data`` is only its beginning. ``what`` names the file in errors. Runs some 20 ms for a vocabulary
    of 50,000 tokens and at most about a second: not on the event loop.
    """
    with memoryview(data) as raw, raw.cast("B") as view:
        cursor = Cursor(view, len(view) if size is None else size, what)
        version = read_preamble(cursor)
        tensors = cursor.count(24, MAX_TENSORS, "tensors")
        keys = cursor.count(13, MAX_KEYS, "metadata keys")
        metadata = Metadata(cursor, keys, _INFILL_NAMES)
        table = read_tensors(cursor, tensors, metadata)
        return _assemble(cursor, version, metadata, table)


def _assemble(cursor: Cursor, version: int, metadata: Metadata, table: TensorTable) -> GgufHeader:
    whole = metadata.whole
    arch = metadata.text("general.architecture")
    split_no, split_count = whole("split.no") or 0, whole("split.count") or 1
    if not arch and split_no == 0:
        raise cursor.bad("does not name its architecture", "get another conversion of the model")
    if split_no >= split_count:
        raise cursor.bad(f"says it is part {split_no + 1} of {split_count}")
    blocks = whole(f"{arch}.block_count") or 0
    if blocks > MAX_LAYERS:
        raise cursor.bad(f"claims {blocks:,} blocks, and at most {MAX_LAYERS:,} are possible")
    causal = metadata.values.get(f"{arch}.attention.causal")
    pooling = metadata.values.get(f"{arch}.pooling_type", -1)
    template, speaks_tools = _template(metadata)
    text = template.decode("utf-8", "replace")
    header = GgufHeader(
        version=version,
        kind=safe_text(metadata.text("general.type") or "model", 32),
        architecture=safe_text(arch, 64) if arch else _NO_TEXT,
        name=safe_text(metadata.text("general.name"), 128),
        file_type=file_type_label(whole("general.file_type")),
        file_bytes=cursor.size,
        basename=safe_text(metadata.text("general.basename"), 128),
        size_label=safe_text(metadata.text("general.size_label"), 32),
        license=safe_text(metadata.text("general.license"), 128),
        block_count=blocks,
        context_length=whole(f"{arch}.context_length") or 0,
        embedding_length=whole(f"{arch}.embedding_length") or 0,
        feed_forward_length=whole(f"{arch}.feed_forward_length") or 0,
        vocab_size=metadata.tokens or whole(f"{arch}.vocab_size") or 0,
        expert_count=whole(f"{arch}.expert_count") or 0,
        expert_used_count=whole(f"{arch}.expert_used_count") or 0,
        expert_feed_forward_length=whole(f"{arch}.expert_feed_forward_length") or 0,
        recurrence=_recurrence(metadata, arch),
        causal=causal is not False,
        pooling=_POOLING.get(pooling, "") if isinstance(pooling, int) else "",
        tokenizer=safe_text(metadata.text("tokenizer.ggml.model"), 64),
        has_template=bool(template or _named_templates(metadata)),
        template=text[:MAX_TEMPLATE],
        template_sha256=hashlib.sha256(template).hexdigest() if template else "",
        template_speaks_tools=speaks_tools,
        template_thinks=_THINKS.search(text) is not None,
        infill_tokens=_infill_tokens(metadata),
        split_no=split_no,
        split_count=split_count,
        split_tensors=whole("split.tensors.count") or 0,
        tensor_count=table.count,
        parameters=table.elements,
        tensor_bytes=table.total,
        token_embd_bytes=table.token_embd,
        output_bytes=table.output,
    )
    return _with_attention(header, metadata, arch)


def _with_attention(header: GgufHeader, metadata: Metadata, arch: str) -> GgufHeader:
    """What decides the size of a token in the KV cache."""
    whole = metadata.whole
    prefix = f"{arch}.attention."
    heads = metadata.per_layer(prefix + "head_count")
    first = next((count for count in heads if count), 0) if isinstance(heads, tuple) else heads
    per_head = header.embedding_length // first if first else 0
    kv_heads = (
        metadata.per_layer(prefix + "head_count_kv") if prefix + "head_count_kv" in metadata.values else heads
    )
    key, value = whole(prefix + "key_length") or per_head, whole(prefix + "value_length") or per_head
    pattern = metadata.values.get(prefix + "sliding_window_pattern")
    if isinstance(pattern, tuple):
        swa: tuple[bool, ...] | int | None = tuple(bool(item) for item in pattern) or None
    else:
        swa = None if pattern is None else whole(prefix + "sliding_window_pattern")
    return replace(
        header,
        head_count=heads,
        head_count_kv=kv_heads,
        key_length=key,
        value_length=value,
        key_length_swa=whole(prefix + "key_length_swa") or key,
        value_length_swa=whole(prefix + "value_length_swa") or value,
        mla=bool(whole(prefix + "key_length_mla") and whole(prefix + "value_length_mla")),
        shared_kv_layers=whole(prefix + "shared_kv_layers") or 0,
        sliding_window=whole(prefix + "sliding_window") or 0,
        swa_layers=swa,
    )


def _recurrence(metadata: Metadata, arch: str) -> Recurrence:
    def whole(key: str) -> int:
        return metadata.whole(f"{arch}.{key}") or 0

    layers = metadata.values.get(f"{arch}.attention.recurrent_layers")
    return Recurrence(
        conv_kernel=whole("ssm.conv_kernel"),
        inner_size=whole("ssm.inner_size"),
        state_size=whole("ssm.state_size"),
        group_count=whole("ssm.group_count"),
        wkv_head_size=whole("wkv.head_size"),
        token_shift=whole("token_shift_count"),
        short_conv=whole("shortconv.l_cache"),
        kda_head_dim=whole("kda.head_dim"),
        attention_every=whole("full_attention_interval"),
        layers=tuple(bool(item) for item in layers) if isinstance(layers, tuple) else (),
    )


def _template(metadata: Metadata) -> tuple[bytes, bool]:
    """The main chat template, empty where there is none, and whether any template handles tools."""
    template = metadata.values.get(_TEMPLATE)
    main = template if isinstance(template, bytes) else b""
    speaks = speaks_tools(main.decode("utf-8", "replace")) or any(
        "tool" in name or speaks_tools(metadata.text(name)) for name in _named_templates(metadata)
    )
    return main, speaks


def _named_templates(metadata: Metadata) -> list[str]:
    return [name for name in metadata.values if name.startswith(_TEMPLATE + ".")]


def _infill_tokens(metadata: Metadata) -> tuple[int, int, int] | None:
    """The ids of all three, None where one is missing or lies outside the vocabulary."""
    found: list[int] = []
    for keys, names in _INFILL:
        given = [metadata.values.get(f"tokenizer.ggml.{key}_token_id") for key in keys]
        given += [metadata.known_tokens.get(name) for name in names]
        token = next((each for each in given if each is not None), None)
        if not isinstance(token, int) or not 0 <= token < metadata.tokens:
            return None
        found.append(int(token))
    before, behind, gap = found
    return before, behind, gap


def speaks_tools(template: str) -> bool:
    """Whether a chat template looks at the ``tools`` of a request, judged by its statements alone.

    Prose that mentions tools outside of statements does not count.
    """
    at = 0
    while (opening := _OPENING.search(template, at)) is not None:
        start = opening.start()
        at = template.find("%}" if opening[0] == "{%" else "}}", start)
        if at < 0:
            return False
        if _TOOLS.search(template, start, at):
            return True
    return False


def combine(headers: Sequence[GgufHeader], *, what: str = "the model") -> GgufHeader:
    """One header for all parts of a split file: the first part's statements, the tensors of all.

    Parts may come in any order. Raises where one is missing, double, or of another split.
    """
    parts = sorted(headers, key=lambda header: header.split_no)
    if not parts:
        raise ValueError("no headers to combine")
    count = parts[0].split_count
    if any(part.split_count != count for part in parts):
        raise LocalError(
            "bad_model_file", f"{what} is put together from parts of different splits", FETCH_AGAIN
        )
    numbers = [part.split_no for part in parts]
    missing = sorted(set(range(min(count, MAX_PARTS))) - set(numbers))
    if missing:
        shown = ", ".join(str(number + 1) for number in missing[:8])
        raise LocalError(
            "bad_model_file", f"{what} lacks part {shown} of {count}", "put all parts into one directory"
        )
    if len(parts) != count:
        raise LocalError("bad_model_file", f"{what} has {len(parts)} parts where {count} belong", FETCH_AGAIN)
    tensors = sum(part.tensor_count for part in parts)
    first = parts[0]
    if first.split_tensors and tensors != first.split_tensors:
        raise LocalError(
            "bad_model_file",
            f"{what} has {tensors:,} tensors where {first.split_tensors:,} belong",
            FETCH_AGAIN,
        )
    return replace(
        first,
        split_count=1,
        file_bytes=sum(part.file_bytes for part in parts),
        tensor_count=tensors,
        parameters=sum(part.parameters for part in parts),
        tensor_bytes=sum(part.tensor_bytes for part in parts),
        token_embd_bytes=sum(part.token_embd_bytes for part in parts),
        output_bytes=sum(part.output_bytes for part in parts),
    )
