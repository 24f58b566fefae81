from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.completions.output import CompletionOutput
from relaydesk.core.gateway.completions.request import parse_completion
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.sse import SseParser
from relaydesk.core.gateway.usage import Usage

ME = Identity("abc", "public/name:q4", 1796000000999)
HEAD = {"id": "cmpl-abc", "object": "text_completion", "created": 1796000000, "model": "public/name:q4"}
ENTRY = {"token": "a", "bytes": [97], "logprob": -1.0, "top_logprobs": [{"token": "b", "logprob": -0.5}]}
LOGPROBS = json.dumps({"content": [ENTRY]}).encode()


def output(**fields: Any) -> CompletionOutput:
    return CompletionOutput(ME, parse_completion(json.dumps({"prompt": "Hi", **fields}).encode()))


def payloads(frames: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in SseParser().feed(frames)]


def test_chunks() -> None:
    says = output(prompt=["a", "b"])
    assert payloads(says.piece(1, Piece(content=rb'"\u00e9\/"'))) == [
        {**HEAD, "choices": [{"text": "é/", "index": 1, "logprobs": None, "finish_reason": None}]}
    ]
    assert rb'"text":"\u00e9\/"' in says.piece(1, Piece(content=rb'"\u00e9\/"'))
    (last,) = payloads(says.piece(1, Piece(finish=b'"stop"')))
    assert last["choices"] == [{"text": "", "index": 1, "logprobs": None, "finish_reason": "stop"}]


def test_usage_only_where_asked_and_with_no_choices() -> None:
    assert output().close(Usage(1, 2, 3), Spent()) == b"data: [DONE]\n\n"
    frames = output(stream_options={"include_usage": True}).close(Usage(1, 2, 3), Spent())
    assert frames.endswith(b"data: [DONE]\n\n")
    (usage,) = payloads(frames.removesuffix(b"data: [DONE]\n\n"))
    assert usage == {
        **HEAD,
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }


def test_the_prompt_comes_once_before_each_choice() -> None:
    says = output(prompt=["a", "b"], n=2, echo=True)
    texts: dict[int, str] = {}
    for choice in (2, 0, 2, 3, 1):
        for chunk in payloads(says.piece(choice, Piece(content=b'"x"'))):
            index = chunk["choices"][0]["index"]
            texts[index] = texts.get(index, "") + chunk["choices"][0]["text"]
    assert texts == {0: "ax", 1: "ax", 2: "bxx", 3: "bx"}


@pytest.mark.parametrize("echo", [True, False])
def test_a_whole_answer_is_what_the_stream_would_have_been(echo: bool) -> None:
    pieces = [Piece(content=b'"a"'), Piece(content=rb'"\n"', finish=b'"length"')]
    streamed, whole = output(echo=echo), output(echo=echo)
    text = "".join(
        chunk["choices"][0]["text"] for piece in pieces for chunk in payloads(streamed.piece(0, piece))
    )
    answer = Answer()
    for piece in pieces:
        answer.add(piece)
    body = json.loads(whole.whole([answer], Usage(1, 2, 3), Spent()))
    assert body == {
        **HEAD,
        "choices": [{"text": text, "index": 0, "logprobs": None, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
    assert text == ("Hi" if echo else "") + "a\n"


def test_an_empty_answer() -> None:
    answer = Answer()
    answer.add(Piece(finish=b'"length"'))
    (choice,) = json.loads(output().whole([answer], Usage(0, 0, 0), Spent()))["choices"]
    assert choice["text"] == ""


def test_logprobs_streamed_and_whole() -> None:
    expected = {
        "tokens": ["a"],
        "token_logprobs": [-1.0],
        "top_logprobs": [{"b": -0.5, "a": -1.0}],
        "text_offset": [0],
    }
    piece = Piece(content=b'"a"', logprobs=LOGPROBS)
    streamed = output(logprobs=1)
    (chunk,) = payloads(streamed.piece(0, piece))
    assert chunk["choices"][0]["logprobs"] == expected
    (second,) = payloads(streamed.piece(0, piece))
    assert second["choices"][0]["logprobs"]["text_offset"] == [1]
    answer = Answer()
    answer.add(piece)
    (choice,) = json.loads(output(logprobs=1).whole([answer], Usage(0, 0, 0), Spent()))["choices"]
    assert choice["logprobs"] == expected


def test_a_failure_in_the_stream_is_one_frame() -> None:
    (frame,) = payloads(output().error(Fault("engine_failed", "it broke")))
    assert frame["error"]["code"] == "engine_failed"
