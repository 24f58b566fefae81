from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.ids import parse_model_name
from relaydesk.engine.pull.naming import repository_name, suggest_name


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (("SmolLM2-135M-Instruct.Q4_1",), "smollm2-135m-instruct.q4_1"),
        (("qwen2.5:0.5b",), "qwen2.5:0.5b"),
        (("My model (final)",), "my-model-final"),
        (("net/evil",), "net-evil"),
        (("../../etc",), "etc"),
        (("sha256-" + "0" * 64, "Llama 3"), "llama-3"),
        (("model", "ggml-model-q4_0", "Real Name"), "real-name"),
        (("", "\x1b[2J", "日本"), "2j"),
        (("日本",), "model"),
        ((), "model"),
    ],
)
def test_suggests_a_telling_name(texts: tuple[str, ...], name: str) -> None:
    assert suggest_name(*texts) == name


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=200), max_size=3))
def test_every_suggestion_is_a_valid_name(texts: list[str]) -> None:
    name = suggest_name(*texts)
    assert parse_model_name(name) == name


def test_the_format_is_no_part_of_a_name() -> None:
    assert repository_name("Qwen2.5-0.5B-Instruct-GGUF") == "Qwen2.5-0.5B-Instruct"
    assert repository_name("m_gguf") == "m"
    assert repository_name("gguf") == "gguf"
