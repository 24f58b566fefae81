"""What a message may say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.gateway.scrub import MAX_MESSAGE, scrub, scrub_engine


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cannot open '/home/me/m.gguf': no", "cannot open '(file)': no"),
        ("at ~/models/x and C:\\m\\x.gguf", "at (file) and (file)"),
        ("bind unix:///run/x.sock failed", "bind (address) failed"),
        ("connect http://10.0.0.3:8080/v1 failed", "connect (address) failed"),
        ("peer 127.0.0.1:41233, [::1]:80, localhost:99", "peer (address), (address), (address)"),
        ("listening on port 8383", "listening on (address)"),
    ],
)
def test_paths_and_addresses_go(text: str, said: str) -> None:
    assert scrub(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "GET /v1/models lists the models there are",
        "GET /openapi.json lists the routes there are",
        'the model "hf.co/u/R-GGUF:Q4_K_M" does not exist',
        "needs 12.5 GiB and/or 3 layers, 1/2 done",
        "set model to one of org/a:q4, b",
        "messages[0].content[1] must be a string",
    ],
)
def test_plain_sentences_stay(text: str) -> None:
    assert scrub(text) == scrub_engine(text) == text


def test_an_engines_words_lose_more() -> None:
    assert scrub_engine("failed to load models/Smol.Q4.gguf\nnow\x1b[2J") == "failed to load (file) now[2J"
    assert scrub_engine("bad JSON; last read: '\"my secret prompt") == "bad JSON"
    assert len(scrub_engine("x" * 100_000)) <= MAX_MESSAGE


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400) | st.sampled_from(["/", ":", "[", "a/"]).map(lambda part: part * 400))
def test_any_text_is_taken(text: str) -> None:
    assert "\n" not in scrub_engine(text)
    scrub(text)
