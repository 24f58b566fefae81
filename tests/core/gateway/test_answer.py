"""A folded answer is exactly what the stream would have carried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.chat_output import ChatOutput
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import ChoiceStream
from relaydesk.core.gateway.sse import SseParser
from relaydesk.core.gateway.usage import total_usage

RECORDED = Path(__file__).parent / "recorded"
ME = Identity("abc", "m", 5000)


def fold(*streams: list[bytes]) -> dict[str, Any]:
    answers = [Answer() for _ in streams]
    readers = [ChoiceStream(f"call_{n}") for n in range(len(streams))]
    for choice, stream in enumerate(streams):
        for data in stream:
            piece = readers[choice].read(data)
            if piece is not None:
                answers[choice].add(piece)
    found: dict[str, Any] = json.loads(
        ChatOutput(ME).whole(answers, total_usage([r.tally for r in readers]), Spent())
    )
    return found


def chunk(finish: str | None = None, logprobs: Any = None, **delta: Any) -> bytes:
    return json.dumps({"choices": [{"delta": delta, "finish_reason": finish, "logprobs": logprobs}]}).encode()


def test_a_recorded_stream() -> None:
    data = [event.data for event in SseParser().feed((RECORDED / "logprobs.sse").read_bytes())]
    found = fold(data, data)
    assert {k: found[k] for k in ("id", "object", "created", "model")} == {
        "id": "chatcmpl-abc",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
    }
    assert [c["index"] for c in found["choices"]] == [0, 1]
    choice = found["choices"][1]
    assert choice["message"] == {"role": "assistant", "content": "Hello with an"}
    assert choice["finish_reason"] == "length"
    assert [entry["token"] for entry in choice["logprobs"]["content"]] == ["Hello", " with", " an"]
    assert found["usage"]["prompt_tokens"] == 23
    assert found["usage"]["completion_tokens"] == 6
    assert found["usage"]["total_tokens"] == 29


def test_calls_are_joined_and_content_is_null() -> None:
    start = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}
    rest = {"index": 0, "function": {"arguments": ':"é"}'}}
    other = {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}
    found = fold(
        [chunk(tool_calls=[start]), chunk(tool_calls=[rest]), chunk("tool_calls", tool_calls=[other])]
    )
    message = found["choices"][0]["message"]
    assert message["content"] is None
    assert message["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":"é"}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    assert found["choices"][0]["finish_reason"] == "tool_calls"


def test_an_answer_without_text_is_empty_text() -> None:
    message = fold([chunk("stop")])["choices"][0]
    assert message["message"] == {"role": "assistant", "content": ""}
    assert message["logprobs"] is None


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=10), max_size=8)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3), st.booleans())
def test_text_is_the_exact_concatenation(
    choices: list[tuple[list[str], list[str]]], ascii_only: bool
) -> None:
    streams = []
    for content, reasoning in choices:
        stream = [{"choices": [{"delta": {"reasoning_content": text}}]} for text in reasoning]
        stream += [{"choices": [{"delta": {"content": text}}]} for text in content]
        stream += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}]
        streams.append([json.dumps(data, ensure_ascii=ascii_only).encode() for data in stream])
    found = fold(*streams)
    for (content, reasoning), choice in zip(choices, found["choices"], strict=True):
        assert choice["message"]["content"] == "".join(content)
        assert choice["message"].get("reasoning_content", "") == "".join(reasoning)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text(max_size=4), max_size=3), max_size=5))
def test_logprobs_are_the_exact_concatenation(tokens: list[list[str]]) -> None:
    stream = [chunk(logprobs={"content": [{"token": t} for t in some]}, content="x") for some in tokens]
    found = fold([*stream, chunk("stop")])["choices"][0]["logprobs"]
    if tokens:
        assert [entry["token"] for entry in found["content"]] == [t for some in tokens for t in some]
    else:
        assert found is None
