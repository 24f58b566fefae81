"""What is mended in an engine's stream: why a choice ended, and characters cut in two."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.piece import ChoiceStream, Piece


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


def call(arguments: str, name: str | None = "f") -> list[dict[str, Any]]:
    return [{"index": 0, "function": {**({"name": name} if name else {}), "arguments": arguments}}]


def read(*chunks: bytes) -> tuple[list[Piece], ChoiceStream]:
    stream = ChoiceStream("p")
    pieces = [stream.read(each) for each in chunks]
    return [piece for piece in pieces if piece is not None], stream


@pytest.mark.parametrize(
    ("calls", "said", "reason"),
    [
        (True, "stop", "tool_calls"),
        (True, "tool_calls", "tool_calls"),
        (True, "function_call", "tool_calls"),
        (True, "length", "length"),
        (False, "stop", "stop"),
        (False, "tool_calls", "stop"),
        (False, "length", "length"),
        (False, "content_filter", "content_filter"),
    ],
)
def test_calls_are_why_a_choice_ended_if_it_had_any(calls: bool, said: str, reason: str) -> None:
    delta = {"tool_calls": call("{}")} if calls else {"content": "a"}
    pieces, stream = read(chunk(**delta), chunk(said))
    assert pieces[-1].finish == json.dumps(reason).encode()
    assert stream.tally.finish_reason == reason


def test_calls_and_the_end_in_one_chunk() -> None:
    pieces, _ = read(chunk("stop", tool_calls=call("{}")))
    assert [(bool(piece.calls), piece.finish) for piece in pieces] == [(True, b'"tool_calls"')]


def test_an_empty_reason_ends_nothing() -> None:
    pieces, stream = read(chunk("", content="a"), chunk("", content="b"), chunk("stop"))
    assert [piece.finish for piece in pieces] == [b"", b"", b'"stop"']
    stream.end()


def test_a_character_in_two_chunks_is_said_once_and_whole() -> None:
    half, other = (
        rb'{"choices":[{"delta":{"content":"a\ud83d"}}]}',
        rb'{"choices":[{"delta":{"content":"\ude0ab"}}]}',
    )
    pieces, stream = read(half, other, chunk("stop"))
    assert [piece.content for piece in pieces] == [b'"a"', rb'"\ud83d\ude0ab"', b""]
    assert stream.tally.completion_tokens == 2


def test_half_a_character_alone_is_counted_and_said_at_the_end() -> None:
    for field in ("content", "reasoning_content"):
        data = json.dumps({"choices": [{"delta": {field: "\ud83d"}}]}).encode()
        pieces, stream = read(data, chunk("length"))
        (last,) = pieces
        assert (last.content or last.reasoning, last.finish) == (rb'"\ufffd"', b'"length"')
        assert stream.tally.completion_tokens == 1


def test_halves_in_arguments() -> None:
    pieces, _ = read(
        chunk(tool_calls=call("\ud83d")),
        chunk(tool_calls=call("\ude0a\ud83d", None)),
        chunk("tool_calls"),
    )
    answer = Answer()
    for piece in pieces:
        answer.add(piece)
    assert json.loads(answer.calls[0].arguments) == "😊\ufffd"
    for piece in pieces:
        json.dumps(json.loads(piece.calls or b"null"), ensure_ascii=False).encode()


def test_halves_in_a_refusal() -> None:
    pieces, _ = read(json.dumps({"choices": [{"delta": {"refusal": "no\ud83d"}}]}).encode())
    assert pieces[0].refusal == rb'"no\ufffd"'
