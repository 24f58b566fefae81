"""What is told of a model, out of its registration and its file."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from relaydesk.core.gateway.ollama.facts import Facts, facts_of, tagged
from relaydesk.core.gateway.work import Capabilities
from relaydesk.core.pool.gguf import GgufHeader, read_header
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.text import safe_text
from tests.support import gguf_builder

HEADER = read_header(gguf_builder.tiny(general__basename="Base", general__license="mit"))
SPEC = ModelSpec(name="qwen3", path="/secret/place/q.gguf", size_bytes=4321, added_ms=1_796_000_000_000)
PLAIN = Capabilities()


def facts(spec: ModelSpec = SPEC, header: GgufHeader | None = HEADER, can: Capabilities = PLAIN) -> Facts:
    return facts_of(spec, header, can, 2048)


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("qwen3", "qwen3:latest"),
        ("qwen3:8b", "qwen3:8b"),
        ("hf.co/u/R-GGUF", "hf.co/u/R-GGUF:latest"),
        ("hf.co/u/R-GGUF:Q4_K_M", "hf.co/u/R-GGUF:Q4_K_M"),
        ("host:5000/m", "host:5000/m:latest"),
    ],
)
def test_every_name_is_shown_with_a_tag(name: str, tag: str) -> None:
    assert tagged(name) == tag


def test_a_file_of_ours() -> None:
    found = facts()
    assert (found.tag, found.size, found.modified_ms) == ("qwen3:latest", 4321, 1_796_000_000_000)
    assert (found.format, found.family, found.quantization) == ("gguf", "llama", "F32")
    assert (found.context_length, found.embedding_length) == (2048, 64)
    assert (found.parameter_size, found.license) == ("9K", "mit")
    assert found.template == HEADER.template
    assert found.info == {
        "general.architecture": "llama",
        "general.basename": "qwen3",
        "general.name": "Tiny",
        "general.license": "mit",
        "general.parameter_count": 8704,
        "general.file_type": 0,
        "tokenizer.ggml.model": "gpt2",
        "llama.context_length": 2048,
        "llama.block_count": 2,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 128,
        "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1,
    }


@pytest.mark.parametrize(
    ("parameters", "shown"), [(134_515_008, "134.52M"), (8_030_261_248, "8.0B"), (999, "999"), (0, "13M")]
)
def test_a_size_is_counted_or_else_as_the_file_says(parameters: int, shown: str) -> None:
    header = replace(HEADER, parameters=parameters, size_label=safe_text("13M"))
    assert facts(header=header).parameter_size == shown


def test_capabilities_in_ollamas_words() -> None:
    assert facts().capabilities == ("completion",)
    everything = Capabilities(tools=True, images=True, thinking=True, infill=True)
    assert facts(can=everything).capabilities == ("completion", "tools", "insert", "vision", "thinking")
    only = msgspec.structs.replace(everything, completion=False, embedding=True)
    assert facts(can=only).capabilities == ("embedding",)
    assert facts(can=Capabilities(completion=False)).capabilities == ()


def test_a_far_server_promises_no_more_than_is_known() -> None:
    far = ModelSpec(name="far", kind="url", url="http://10.0.0.1/v1", added_ms=5)
    found = facts_of(far, None, Capabilities(tools=True, images=True, thinking=True, infill=True), 0)
    assert found.capabilities == ("completion", "tools")
    assert (found.size, found.format, found.family, found.parameter_size) == (0, "", "", "")
    assert found.info == {"general.architecture": "unknown", "general.basename": "far"}
    assert facts_of(far, None, PLAIN, 4096).info["unknown.context_length"] == 4096


def test_a_template_of_the_operators_own_is_not_the_models() -> None:
    assert facts(msgspec.structs.replace(SPEC, template="/t.jinja")).template == ""


def test_the_digest_is_the_files_where_it_is_known_and_stable_where_not() -> None:
    known = "ab" * 32
    assert facts(msgspec.structs.replace(SPEC, sha256=known)).digest == known
    assert facts().digest == facts().digest
    assert len(facts().digest) == 64
    others = [
        facts(msgspec.structs.replace(SPEC, name="b")),
        facts(msgspec.structs.replace(SPEC, size_bytes=1)),
        facts(header=replace(HEADER, tensor_bytes=1)),
        facts(header=None),
    ]
    assert len({each.digest for each in (facts(), *others)}) == 5
    # Where the file lies tells nobody anything.
    assert facts(msgspec.structs.replace(SPEC, path="/else")).digest == facts().digest
