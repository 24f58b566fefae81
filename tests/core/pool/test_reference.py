from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.reference import (
    Choice,
    HfRef,
    SmolRef,
    choices,
    choose,
    choose_projector,
    is_safe_path,
    parse_reference,
    quant_of,
    split_part,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("smollm2", SmolRef()),
        (" SmolLM2 ", SmolRef()),
        ("hf:bartowski/Qwen2.5-0.5B-Instruct-GGUF", HfRef("bartowski", "Qwen2.5-0.5B-Instruct-GGUF")),
        ("hf:o/r:Q4_K_M", HfRef("o", "r", quant="Q4_K_M")),
        ("hf.co/o/r:latest", HfRef("o", "r")),
        ("hf:o/r/sub/m-Q8_0.gguf", HfRef("o", "r", file="sub/m-Q8_0.gguf")),
        ("huggingface.co/o/r", HfRef("o", "r")),
        ("https://huggingface.co/o/r/tree/main", HfRef("o", "r")),
        ("https://huggingface.co/o/r/blob/main/m.gguf?download=true", HfRef("o", "r", file="m.gguf")),
        ("https://hf.co/o/r/resolve/main/a/m.gguf#x", HfRef("o", "r", file="a/m.gguf")),
        ("hf:o/r/", HfRef("o", "r")),
    ],
)
def test_reads_every_form(text: str, expected: SmolRef | HfRef) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a model reference"),
        ("qwen", "is not a model reference"),
        ("http://huggingface.co/o/r", "is not a model reference"),
        ("https://hf:o/r", "is not a model reference"),
        ("https://evil.example/o/r", "is not a model reference"),
        ("hf:/r", "no valid owner"),
        ("hf:o", "no valid repository"),
        ("hf:o/..", "no valid repository"),
        ("hf:o/a--b", "no valid repository"),
        ("hf:../r", "no valid owner"),
        ("hf:o/r:", "no valid quantisation"),
        ("hf:o/r:Q4/../x", "no valid quantisation"),
        ("hf:o/r/m.safetensors", "does not end in .gguf"),
        ("hf:o/r/../../m.gguf", "no valid file name"),
        ("hf:o/r/.m.gguf", "no valid file name"),
        ("hf:o/r/blob/dev/m.gguf", "another revision"),
        ("hf:o/r/a\x1b[2J.gguf", "no valid file name"),
        ("hf:" + "o" * 600, "at most 512"),
    ],
)
def test_refuses_in_one_sentence(text: str, says: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse_reference(text)
    fault = caught.value.fault
    assert fault.code == "invalid_request"
    assert says in fault.message
    assert "\x1b" not in fault.sentence
    assert "hf:OWNER/REPO" in fault.hint


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=80), st.text(max_size=60).map(lambda t: "hf:o/" + t)))
def test_any_text_is_a_reference_or_a_fault(text: str) -> None:
    try:
        reference = parse_reference(text)
    except LocalError:
        return
    assert parse_reference(str(reference)) == reference
    if isinstance(reference, HfRef):
        assert "/" not in reference.owner + reference.repo
        assert reference.quant is None or reference.file is None
        assert reference.file is None or is_safe_path(reference.file)


@pytest.mark.parametrize(
    ("path", "quant"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("a/Qwen2.5-7B-q4_k_m-00001-of-00003.gguf", "Q4_K_M"),
        ("m-UD-IQ2_XXS.gguf", "UD-IQ2_XXS"),
        ("m-bf16.gguf", "BF16"),
        ("m.fp16.gguf", "FP16"),
        ("q4_0-model.gguf", "Q4_0"),
        ("m-TQ1_0.gguf", "TQ1_0"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("Qwen3-8B.gguf", None),
        ("model.gguf", None),
    ],
)
def test_quantisation_is_read_off_the_name(path: str, quant: str | None) -> None:
    assert quant_of(path) == quant


def test_split_parts() -> None:
    assert split_part("a/m-00002-of-00003.gguf") == ("a/m", 2, 3)
    assert split_part("m-00004-of-00003.gguf") is None
    assert split_part("m-00000-of-00003.gguf") is None
    assert split_part("m.gguf") is None


REPO = [
    "README.md",
    "m-Q8_0.gguf",
    "m-Q4_K_M.gguf",
    "m-Q4_0.gguf",
    "m-F16-00001-of-00002.gguf",
    "m-F16-00002-of-00002.gguf",
    "m-Q2_K-00001-of-00002.gguf",
    "mmproj-m-BF16.gguf",
    "mmproj-m-F16.gguf",
    "imatrix.gguf",
    "../m-Q5_0.gguf",
]


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("hf:o/r", ("m-Q4_K_M.gguf",)),
        ("hf:o/r:q8_0", ("m-Q8_0.gguf",)),
        ("hf:o/r:f16", ("m-F16-00001-of-00002.gguf", "m-F16-00002-of-00002.gguf")),
        ("hf:o/r/m-F16-00002-of-00002.gguf", ("m-F16-00001-of-00002.gguf", "m-F16-00002-of-00002.gguf")),
        ("hf:o/r/M-q8_0.GGUF", ("m-Q8_0.gguf",)),
    ],
)
def test_chooses_the_file_that_is_meant(text: str, files: tuple[str, ...]) -> None:
    reference = parse_reference(text)
    assert isinstance(reference, HfRef)
    assert choose(reference, REPO).files == files


@pytest.mark.parametrize(
    ("text", "paths", "code", "says"),
    [
        ("hf:o/r", ["README.md", "mmproj-F16.gguf"], "not_found", "no GGUF model"),
        ("hf:o/r:Q6_K", REPO, "not_found", "no file quantised as Q6_K"),
        ("hf:o/r/x.gguf", REPO, "not_found", "no file x.gguf"),
        ("hf:o/r:Q2_K", REPO, "not_found", "lists 1 of the 2 parts"),
        ("hf:o/r/mmproj-m-F16.gguf", REPO, "invalid_request", "is a projector"),
        ("hf:o/r", ["a-Q8_0.gguf", "a-Q6_K.gguf"], "invalid_request", "Q6_K, Q8_0"),
        ("hf:o/r", ["a.gguf", "a-Q6_K.gguf"], "invalid_request", "/FILE with one of a-Q6_K.gguf, a.gguf"),
        ("hf:o/r", ["a-Q4_K_M.gguf", "b-Q4_K_M.gguf"], "invalid_request", "a-Q4_K_M.gguf, b-Q4_K_M.gguf"),
        ("hf:o/r:Q5_0", REPO, "not_found", "Q4_K_M"),
    ],
)
def test_says_what_there_is(text: str, paths: list[str], code: str, says: str) -> None:
    reference = parse_reference(text)
    assert isinstance(reference, HfRef)
    with pytest.raises(LocalError) as caught:
        choose(reference, paths)
    assert caught.value.fault.code == code
    assert says in caught.value.fault.sentence


def test_preference_order_then_the_sole_file() -> None:
    reference = HfRef("o", "r")
    assert choose(reference, ["a-Q4_1.gguf", "a-Q4_0.gguf", "a-F16.gguf"]).files == ("a-Q4_0.gguf",)
    assert choose(reference, ["a-Q4_1.gguf", "a-F16.gguf"]).files == ("a-Q4_1.gguf",)
    assert choose(reference, ["a-F16.gguf", "mmproj-Q4_0.gguf"]).files == ("a-F16.gguf",)
    assert choose(HfRef("o", "r", quant="Q4_K_XL"), ["a-UD-Q4_K_XL.gguf"]).files == ("a-UD-Q4_K_XL.gguf",)


def test_a_long_list_is_cut() -> None:
    with pytest.raises(LocalError) as caught:
        choose(HfRef("o", "r", quant="Q3_K"), [f"m{n}.gguf" for n in range(40)])
    assert caught.value.fault.hint.endswith("and 28 more")


def test_projector_is_offered_in_the_models_folder_first() -> None:
    model = choose(HfRef("o", "r"), REPO)
    chosen = choose_projector(model, REPO)
    assert chosen is not None and chosen.files == ("mmproj-m-F16.gguf",)
    nested = Choice(("a/m-Q4_0.gguf",), "Q4_0", False, 1)
    found = choose_projector(nested, ["mmproj-F16.gguf", "a/mmproj-Q8_0.gguf"])
    assert found is not None and found.files == ("a/mmproj-Q8_0.gguf",)
    assert choose_projector(model, ["m.gguf"]) is None


names = st.lists(
    st.one_of(
        st.builds(
            lambda stem, i, n: f"{stem}-{i:05d}-of-{n:05d}.gguf",
            st.sampled_from(["a", "b-Q4_0", "x/c"]),
            st.integers(0, 4),
            st.integers(1, 4),
        ),
        st.text(alphabet="abQ4_K0.-/gufmproj", max_size=16).map(lambda t: t + ".gguf"),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(names)
def test_choices_partition_the_files(paths: list[str]) -> None:
    found = choices(paths)
    listed = [file for choice in found for file in choice.files]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(paths)
    for choice in found:
        assert 1 <= len(choice.files) <= choice.parts
        assert all(is_safe_path(file) for file in choice.files)
