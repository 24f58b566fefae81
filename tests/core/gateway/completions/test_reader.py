"""A completion's stream as the engine sends it: recorded, damaged, and in the shape of other servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.completions.reader import TextStream, about_prompt
from relaydesk.core.gateway.sse import SseParser

RECORDED = Path(__file__).parent / "recorded"


def events(name: str) -> list[bytes]:
    return [event.data for event in SseParser().feed((RECORDED / name).read_bytes())]


def chunk(text: str = "", finish: Any = None, **choice: Any) -> bytes:
    return json.dumps({"choices": [{"text": text, "index": 0, "finish_reason": finish, **choice}]}).encode()


def test_a_recorded_stream() -> None:
    reader = TextStream()
    pieces = [piece for data in events("plain.sse") if (piece := reader.read(data)) is not None]
    reader.end()
    said = [json.loads(data)["choices"] for data in events("plain.sse") if data != b"[DONE]"]
    assert "".join(json.loads(piece.content or b'""') for piece in pieces) == "".join(
        choices[0]["text"] for choices in said if choices
    )
    assert pieces[-1].finish == b'"length"'
    tally = reader.tally
    assert (tally.prompt_tokens, tally.completion_tokens, tally.exact) == (5, 6, True)
    assert tally.progress == (5, 5)


def test_recorded_logprobs_stay_as_they_are() -> None:
    reader = TextStream()
    pieces = [piece for data in events("logprobs.sse") if (piece := reader.read(data)) is not None]
    sent = [
        json.loads(data)["choices"][0]["logprobs"]
        for data in events("logprobs.sse")
        if data != b"[DONE]" and b'"logprobs":{' in data
    ]
    assert [json.loads(piece.logprobs) for piece in pieces if piece.logprobs] == sent
    assert sent


def test_logprobs_of_other_servers_get_a_chats_shape() -> None:
    logprobs = {
        "tokens": ["a", '"content"'],
        "token_logprobs": [-1.0, None],
        "top_logprobs": [{"a": -1.0, "b": -2.0}, None],
        "text_offset": [0, 1],
    }
    piece = TextStream().read(chunk("a", logprobs=logprobs))
    assert piece is not None
    content = json.loads(piece.logprobs)["content"]
    assert [(each["token"], each["logprob"]) for each in content] == [("a", -1.0), ('"content"', None)]
    assert [each["token"] for each in content[0]["top_logprobs"]] == ["a", "b"]


def test_an_answer_that_stops_in_the_middle() -> None:
    reader = TextStream()
    reader.read(chunk("a"))
    assert reader.tally.completion_tokens == 1
    with pytest.raises(PeerError) as caught:
        reader.end()
    assert caught.value.fault.code == "engine_failed"


@pytest.mark.parametrize(
    "data",
    [b"nonsense", chunk("a", logprobs={"tokens": 3}), b'{"choices":[{"text":3}]}', b'{"error":"boom"}'],
)
def test_what_is_no_chunk_is_an_engines_failure(data: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        TextStream().read(data)
    assert caught.value.fault.code == "engine_failed"


def test_an_overflow_is_about_the_prompt() -> None:
    data = b'{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}}'
    with pytest.raises(PeerError) as caught:
        TextStream().read(data)
    fault = caught.value.fault
    assert (fault.code, fault.param) == ("context_length_exceeded", "prompt")
    assert "messages" not in fault.sentence
    other = Fault("engine_failed", "it broke")
    assert about_prompt(other) is other


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(events("plain.sse") + events("logprobs.sse")), st.data())
def test_damaged_chunks_give_pieces_or_an_engines_failure(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        damaged[draw.draw(st.integers(0, len(damaged) - 1))] = draw.draw(st.integers(0, 255))
    reader = TextStream()
    piece, code = None, "engine_failed"
    try:
        piece = reader.read(bytes(damaged))
    except PeerError as error:
        code = error.fault.code
    assert code in ("engine_failed", "engine_rejected", "context_length_exceeded")
    if piece is not None and piece.content:
        assert isinstance(json.loads(piece.content.decode("utf-8", "replace")), str)
