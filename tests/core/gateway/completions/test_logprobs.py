from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.completions.logprobs import LegacyLogprobs


def entry(text: str, logprob: float | None, *tops: tuple[str, float], raw: bytes | None = None) -> Any:
    return {
        "id": 1,
        "token": text,
        "bytes": list(text.encode() if raw is None else raw),
        "logprob": logprob,
        "top_logprobs": [{"token": token, "logprob": value, "id": 2} for token, value in tops],
    }


def said(*entries: Any, top: int = 2) -> dict[str, Any]:
    data = json.dumps({"content": list(entries)}).encode()
    found: dict[str, Any] = json.loads(LegacyLogprobs(top).of_piece(data))
    return found


def test_lists_side_by_side() -> None:
    assert said(entry(" a", -1.5, (" the", -0.5), (" a", -1.5), (" b", -3.0)), entry("é", -2.0)) == {
        "tokens": [" a", "é"],
        "token_logprobs": [-1.5, -2.0],
        "top_logprobs": [{" the": -0.5, " a": -1.5}, {"é": -2.0}],
        "text_offset": [0, 2],
    }


def test_the_token_itself_is_always_among_the_alternatives() -> None:
    assert said(entry("c", -9.0, ("a", -0.1), ("b", -0.2)))["top_logprobs"] == [
        {"a": -0.1, "b": -0.2, "c": -9.0}
    ]
    assert said(entry("c", -9.0, ("a", -0.1)), top=0)["top_logprobs"] == [{"c": -9.0}]


def test_offsets_count_characters_over_pieces_and_split_characters() -> None:
    logprobs = LegacyLogprobs(0)
    whole = "😊".encode()
    offsets = []
    for raw in (b"a", whole[:2], whole[2:], b"b", b"\xff", b"c"):
        data = json.dumps({"content": [entry("x", -1.0, raw=raw)]}).encode()
        offsets += json.loads(logprobs.of_piece(data))["text_offset"]
    assert offsets == [0, 1, 1, 2, 3, 4]


def test_an_engine_without_bytes() -> None:
    bare = {"token": "ab", "logprob": None}
    assert said(bare, bare)["text_offset"] == [0, 2]
    assert said(bare)["token_logprobs"] == [None]


@pytest.mark.parametrize("data", [b'{"content":3}', b'{"content":[{}]}', b"[]", b'{"content":[3]}'])
def test_what_is_no_logprobs_is_an_engines_failure(data: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        LegacyLogprobs(1).of_piece(data)
    assert caught.value.fault.code == "engine_failed"
    with pytest.raises(PeerError):
        LegacyLogprobs(1).of_answer({"content": [Raw(b"3")]})


TEXTS = st.lists(st.text(min_size=1, max_size=4), max_size=6)


@given(TEXTS, st.integers(1, 5))
def test_pieces_and_the_whole_say_the_same(texts: list[str], cut: int) -> None:
    entries = [entry(text, -1.0, ("a", -0.5)) for text in texts]
    whole = json.loads(
        LegacyLogprobs(1).of_answer({"content": [Raw(json.dumps(e).encode()) for e in entries]})
    )
    streamed = LegacyLogprobs(1)
    joined: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for start in range(0, len(entries), cut):
        data = json.dumps({"content": entries[start : start + cut]}).encode()
        for name, values in json.loads(streamed.of_piece(data)).items():
            joined[name] += values
    assert joined == whole
    text = "".join(texts)
    assert all(
        text[at:].startswith(token) for token, at in zip(whole["tokens"], whole["text_offset"], strict=True)
    )
