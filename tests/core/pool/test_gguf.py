from __future__ import annotations

import mmap
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.ggml import TENSOR_TYPES
from relaydesk.core.pool.gguf import combine, read_header, speaks_tools
from tests.support.gguf_builder import (
    ARRAY,
    BOOL,
    I32,
    LLAMA,
    STRING,
    TENSORS,
    U32,
    U64,
    Raw,
    Tensor,
    array,
    build,
    text,
    tiny,
)


def refused(data: bytes, size: int | None = None) -> str:
    with pytest.raises(LocalError) as caught:
        read_header(data, size, what="x.gguf")
    fault = caught.value.fault
    assert fault.code == "bad_model_file"
    assert fault.message.startswith("x.gguf ")
    assert fault.hint
    return fault.message


def test_reads_what_a_model_says_about_itself() -> None:
    header = read_header(tiny())
    assert (header.architecture, header.name, header.file_type) == ("llama", "Tiny", "F32")
    assert (header.block_count, header.context_length, header.embedding_length) == (2, 8192, 64)
    assert (header.head_count, header.head_count_kv) == (2, 1)
    assert (header.key_length, header.value_length) == (32, 32)
    assert (header.vocab_size, header.tokenizer) == (4, "gpt2")
    assert header.has_template
    assert not header.template_speaks_tools
    assert header.template == LLAMA["tokenizer.chat_template"]
    assert header.tensor_count == 4
    assert header.parameters == 2 * 64 * 4 + 2 * 64 * 64
    assert header.token_embd_bytes == 64 * 4 * 4
    assert header.output_bytes == 64 * 4 * 2
    assert header.tensor_bytes == 64 * 4 * 4 + 64 * 64 * 4 + 64 * 64 // 32 * 34 + 64 * 4 * 2
    assert header.file_bytes == len(tiny())


def test_version_2_is_read_alike() -> None:
    assert read_header(build(LLAMA, TENSORS, version=2)).tensor_bytes == read_header(tiny()).tensor_bytes


def test_the_real_model(smollm2: Path) -> None:
    with smollm2.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        header = read_header(data)
    assert (header.block_count, header.head_count_kv, header.key_length) == (30, 3, 64)
    assert (header.file_type, header.vocab_size, header.context_length) == ("Q4_1", 49152, 8192)
    assert header.tensor_bytes == 96_576_768
    assert header.tensor_count == 272
    assert header.parameters == 134_515_008
    assert header.has_template
    assert "<|im_start|>" in header.template
    assert not header.template_speaks_tools
    assert not header.template_thinks
    assert not header.infills


def test_what_clients_are_shown_of_a_model() -> None:
    header = read_header(
        tiny(general__basename="Tiny", general__size_label="13\x1b[1mM", general__license="apache-2.0")
    )
    assert (header.basename, header.license) == ("Tiny", "apache-2.0")
    assert "\x1b" not in header.size_label
    long = read_header(tiny(tokenizer__chat_template="x" * 100_000))
    assert len(long.template) == 64 * 1024
    assert "xxx" not in repr(long)


@pytest.mark.parametrize(
    ("template", "thinks"),
    [
        ("{% if enable_thinking is false %}", True),
        ("{{ '<think>' }}", True),
        ("{{ message.reasoning_content }}", True),
        ("{{ message.thinking }}", True),
        ("{{ rethinking }}", False),
        ("{{ messages }}", False),
    ],
)
def test_a_template_that_thinks(template: str, thinks: bool) -> None:
    assert read_header(tiny(tokenizer__chat_template=template)).template_thinks is thinks


def test_a_model_that_fills_in_the_middle_names_all_three_tokens() -> None:
    new = {f"tokenizer.ggml.fim_{name}_token_id": 1 for name in ("pre", "suf", "mid")}
    old = {f"tokenizer.ggml.{name}_token_id": 1 for name in ("prefix", "suffix", "middle")}
    for names in (new, old):
        assert read_header(build({**LLAMA, **names}, TENSORS)).infills
        del names[next(iter(names))]
        assert not read_header(build({**LLAMA, **names}, TENSORS)).infills


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        (["<|fim_prefix|>", "a", "<|fim_suffix|>", "<|fim_middle|>"], (0, 2, 3)),
        (["<｜fim▁end｜>", "<｜fim▁hole｜>", "<｜fim▁begin｜>"], (2, 1, 0)),
        (["▁<PRE>", "▁<SUF>", "▁<MID>"], (0, 1, 2)),
        (["<PRE>", "<SUF>"], None),
        (["<PRE>", "<SUF>", "<MID> "], None),
    ],
)
def test_tokens_that_fill_in_are_known_by_what_they_are_called(
    tokens: list[str], found: tuple[int, int, int] | None
) -> None:
    header = read_header(tiny(tokenizer__ggml__tokens=array(STRING, tokens)))
    assert header.infill_tokens == found
    assert header.infills is (found is not None)


def test_a_file_that_names_its_tokens_is_believed_as_far_as_it_has_them() -> None:
    names = {f"tokenizer.ggml.fim_{name}_token_id": 3 - n for n, name in enumerate(("pre", "suf", "mid"))}
    assert read_header(build({**LLAMA, **names}, TENSORS)).infill_tokens == (3, 2, 1)
    for wrong in (4, 2**40, -1, "x"):
        names["tokenizer.ggml.fim_mid_token_id"] = wrong
        with_wrong = {
            **LLAMA,
            **{k: v if v != 2**40 else Raw(U64, (2**40).to_bytes(8, "little")) for k, v in names.items()},
        }
        assert read_header(build(with_wrong, TENSORS)).infill_tokens is None


def test_numbers_per_layer_and_patterns() -> None:
    header = read_header(
        tiny(
            llama__attention__head_count_kv=array(I32, [1, 0]),
            llama__attention__sliding_window=128,
            llama__attention__sliding_window_pattern=array(BOOL, [True, False]),
            llama__attention__recurrent_layers=array(BOOL, [False, True]),
            llama__attention__key_length=48,
            llama__ssm__inner_size=256,
        )
    )
    assert header.head_count_kv == (1, 0)
    assert header.swa_layers == (True, False)
    assert header.recurrence.layers == (False, True)
    assert header.recurrence.present
    assert (header.key_length, header.value_length) == (48, 32)


def test_name_is_made_safe() -> None:
    header = read_header(tiny(general__name="a\x1b]52;c;x\x07\u202eb"))
    assert header.name == "a]52;c;xb"


# Bits per weight as the quantisations' authors state them.
BITS = {
    **{"F32": 32, "F16": 16, "BF16": 16, "F64": 64, "I8": 8, "I16": 16, "I32": 32, "I64": 64},
    **{"Q4_0": 4.5, "Q4_1": 5, "Q5_0": 5.5, "Q5_1": 6, "Q8_0": 8.5, "Q8_1": 9, "Q8_K": 9.125},
    **{"Q2_K": 2.625, "Q3_K": 3.4375, "Q4_K": 4.5, "Q5_K": 5.5, "Q6_K": 6.5625},
    **{"IQ1_S": 1.5625, "IQ1_M": 1.75, "IQ2_XXS": 2.0625, "IQ2_XS": 2.3125, "IQ2_S": 2.5625},
    **{"IQ3_XXS": 3.0625, "IQ3_S": 3.4375, "IQ4_XS": 4.25, "IQ4_NL": 4.5},
    **{"TQ1_0": 1.6875, "TQ2_0": 2.0625, "MXFP4": 4.25, "NVFP4": 4.5, "Q1_0": 1.125, "Q2_0": 2.25},
}


def test_every_tensor_type_is_sized() -> None:
    assert {form.name: form.size * 8 / form.block for form in TENSOR_TYPES.values()} == BITS
    for kind, form in TENSOR_TYPES.items():
        row = form.block * 3
        tensor = Tensor("t", (row, 2), kind=kind, stored=2 * 3 * form.size)
        assert read_header(build(LLAMA, [tensor])).tensor_bytes == 6 * form.size, form.name


# --- what is wrong, by its own sentence


def test_empty() -> None:
    assert refused(b"") == "x.gguf is empty"


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"tjgg\x01\x00\x00\x00", "an old GGJT file"),
        (b"PK\x03\x04....", "a ZIP archive"),
        (b"\x80\x02\x8a\nl\xfc\x9cF", "it begins with the bytes 80 02 8a 0a"),
        (b"garbage", 'it begins with "garb"'),
        (b"abc\nd", 'it begins with "abc"'),
    ],
)
def test_not_gguf(start: bytes, name: str) -> None:
    message = refused(start + bytes(100))
    assert "is not a GGUF file" in message
    assert name in message


def test_versions() -> None:
    assert "GGUF version 1" in refused(build(LLAMA, TENSORS, version=1))
    assert "big-endian" in refused(b"GGUF" + struct.pack(">I", 3) + bytes(64))
    assert "version 9" in refused(build(LLAMA, TENSORS, version=9))


def test_cut_off_in_the_data_says_how_much_is_missing() -> None:
    whole = tiny()
    message = refused(whole[:-100])
    # The last tensor is 512 bytes of the file's end and needs no padding.
    assert message == f"x.gguf is cut off: 100 of its {len(whole):,} bytes are missing"


def test_cut_off_in_the_header() -> None:
    assert "end inside the header" in refused(tiny()[:200])
    assert "cut off after 2 bytes" in refused(b"GG")


def test_a_head_alone_is_enough_and_too_short_a_head_is_said() -> None:
    whole = tiny()
    head = build(LLAMA, TENSORS)[: len(whole) - 20_000]
    assert read_header(head, len(whole)) == read_header(whole)
    assert "header longer than the 200 bytes" in refused(whole[:200], len(whole))


def _array_claim(kind: int, count: int) -> Raw:
    return Raw(ARRAY, struct.pack("<IQ", kind, count))


HUGE = 1 << 40
HOSTILE = {
    "array of numbers": build([("general.architecture", "llama"), ("a", _array_claim(U32, HUGE))]),
    "array of texts": build([("general.architecture", "llama"), ("a", _array_claim(STRING, HUGE))]),
    "array of bytes": build([("general.architecture", "llama"), ("a", _array_claim(0, HUGE))]),
    "text": build(
        [("general.architecture", "llama"), ("general.name", Raw(STRING, struct.pack("<Q", HUGE)))]
    ),
    "key": b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", HUGE) + bytes(64),
    "keys": build(LLAMA, TENSORS, keys=HUGE),
    "tensors": build(LLAMA, TENSORS, count=HUGE),
    "largest": build([("general.architecture", "llama"), ("a", _array_claim(STRING, (1 << 64) - 1))]),
    "text in array": build(
        [("general.architecture", "llama"), ("a", Raw(ARRAY, struct.pack("<IQQ", STRING, 1, (1 << 64) - 1)))]
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("padding", [0, 8 << 20])
def test_hostile_counts_are_refused_at_once(name: str, padding: int) -> None:
    data = HOSTILE[name] + bytes(padding)
    tracemalloc.start()
    try:
        begin = time.thread_time()
        message = refused(data)
        took = time.thread_time() - begin
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "claims" in message
    assert took < 0.05
    assert peak < 1 << 20


def test_hostile_tensors() -> None:
    one = [("general.architecture", "llama")]
    assert "unknown type 99" in refused(build(one, [Tensor("t", (32,), kind=99)]))
    assert "Q4_0_4_4" in refused(build(one, [Tensor("t", (32,), kind=31)]))
    assert "9 dimensions" in refused(build(one, [Tensor("t", (1,) * 9)]))
    assert "more elements" in refused(build(one, [Tensor("t", (1 << 40, 1 << 40), stored=32)]))
    assert "a multiple of 32" in refused(build(one, [Tensor("t", (33,), kind=2, stored=36)]))
    assert "outside" in refused(build(one, [Tensor("t", (8,), offset=1 << 40)]))
    assert "multiple of 32" in refused(build(one, [Tensor("t", (8,), offset=4)]))
    assert "twice" in refused(build(one, [Tensor("t", (8,)), Tensor("t", (8,))]))
    assert "on top of each other" in refused(build(one, [Tensor(n, (64,), offset=0) for n in "ab"])[:-128])
    assert "alignment" in refused(build([*one, ("general.alignment", 33)], [Tensor("t", (8,))]))
    assert "a name of 1,000 bytes" in refused(build(one, [Tensor("t" * 1000, (8,))]))


def test_hostile_metadata() -> None:
    assert "does not name its architecture" in refused(build([("a", 1)]))
    assert "twice" in refused(build([("a", 1), ("a", 1)]))
    assert "unknown value type 77" in refused(build([("a", Raw(77, b""))]))
    assert "unknown value type 9" in refused(
        build([("a", Raw(ARRAY, struct.pack("<IQ", ARRAY, 1) + bytes(64)))])
    )
    assert "no usable number in 'llama.block_count'" in refused(tiny(llama__block_count="many"))
    assert "no usable number" in refused(tiny(llama__block_count=-3))
    assert "negative" in refused(tiny(llama__attention__head_count_kv=array(I32, [1, -1])))
    assert "claims 99,999 blocks" in refused(tiny(llama__block_count=99_999))
    long = [("general.architecture", "llama")] + [(f"{n}" + "k" * 60_000, 1) for n in range(20)]
    assert "names of metadata keys" in refused(build(long))


def test_many_texts_are_bounded() -> None:
    count = 4_000_001
    data = build([("general.architecture", "llama"), ("a", _array_claim(STRING, count))]) + bytes(8 * count)
    begin = time.thread_time()
    assert "more than 4,000,000 texts" in refused(data)
    assert time.thread_time() - begin < 0.05


_VALID = tiny()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_mutation_is_read_or_refused_with_a_sentence(data: st.DataObject) -> None:
    raw = bytearray(_VALID)
    header_end = len(raw) - 20_000
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, header_end))
        patch = data.draw(
            st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"\xff" * 8, bytes(8)]))
        )
        raw[at : at + len(patch)] = patch
    cut = data.draw(st.one_of(st.just(len(raw)), st.integers(0, len(raw))))
    begin = time.thread_time()
    fault = None
    try:
        read_header(bytes(raw[:cut]))
    except LocalError as error:
        fault = error.fault
    assert fault is None or (fault.code == "bad_model_file" and len(fault.message) < 400)
    assert time.thread_time() - begin < 0.5


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_refused_with_a_sentence(body: bytes, named: bool) -> None:
    with pytest.raises(LocalError):
        read_header((b"GGUF\x03\x00\x00\x00" if named else b"") + body)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(_VALID) - 1))
def test_every_truncation_is_refused(cut: int) -> None:
    refused(_VALID[:cut])


def test_an_mmap_can_be_closed_after_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(HOSTILE["keys"])
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with pytest.raises(LocalError, match="claims") as caught:
            read_header(data)
        assert caught.tb is not None  # its frames are alive: a view they held would raise BufferError here
        data.close()


# --- chat templates


@pytest.mark.parametrize(
    ("template", "speaks"),
    [
        ("{% if tools %}x{% endif %}", True),
        ("{%- for t in tools -%}", True),
        ("{{ tools | tojson }}", True),
        ("you have tools {{ messages }}", False),
        ("{% if toolset %}{% endif %}", False),
        ("{% if tools", False),
        ("{{" * 100_000, False),
        ("{% x %}" * 50_000, False),
    ],
    ids=["if", "for", "print", "prose", "other", "open", "opens", "long"],
)
def test_template_speaks_tools(template: str, speaks: bool) -> None:
    begin = time.thread_time()
    assert speaks_tools(template) is speaks
    assert time.thread_time() - begin < 0.5


def test_a_named_tool_template_counts() -> None:
    header = read_header(tiny(**{"tokenizer__chat_template.tool_use": "x"}))
    assert header.template_speaks_tools


# --- split files


def _part(number: int, count: int, tensors: list[Tensor], total: int = 3) -> bytes:
    extra: dict[str, object] = {"split.no": number, "split.count": count, "split.tensors.count": total}
    return build({**LLAMA, **extra} if number == 0 else extra, tensors)


def test_split_files_are_combined() -> None:
    parts = [
        read_header(_part(0, 3, [])),
        read_header(_part(2, 3, [Tensor("b", (8,)), Tensor("c", (8,))])),
        read_header(_part(1, 3, [Tensor("a", (8,))])),
    ]
    whole = combine(parts)
    assert (whole.tensor_count, whole.tensor_bytes, whole.split_count) == (3, 96, 1)
    assert whole.parameters == 24
    assert (whole.architecture, whole.block_count) == ("llama", 2)
    for wrong, says in (
        (parts[:2], "lacks part 2 of 3"),
        ([*parts, parts[1]], "has 4 parts where 3 belong"),
        ([parts[0], read_header(_part(1, 2, []))], "different splits"),
        ([read_header(_part(0, 1, [], total=5))], "has 0 tensors where 5 belong"),
    ):
        with pytest.raises(LocalError, match=says):
            combine(wrong)
    assert "part 4 of 3" in refused(_part(3, 3, []))


def test_text_and_u64_builders() -> None:
    assert text("ab") == struct.pack("<Q", 2) + b"ab"
    assert read_header(tiny(llama__context_length=Raw(U64, struct.pack("<Q", 9)))).context_length == 9
