"""Answers as items, streamed and whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.output import Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.responses.output import ResponsesOutput
from relaydesk.core.gateway.usage import Usage
from tests.support import pieces as made
from tests.support.pieces import ME, USAGE, answers, content, events, finish, more, opened, reasoning, refusal

CALLING = [
    reasoning("Hm."),
    content("I look"),
    content("."),
    opened(0, "weather", '{"town":'),
    more(0, '"Oslo"}'),
    opened(1, "time", "{}"),
    finish("tool_calls"),
]


def output() -> ResponsesOutput:
    return ResponsesOutput(ME, b'"store":false')


def follow(seen: list[Any]) -> list[Any]:
    """The items as a client puts them together from events, checking their order on the way."""
    assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
    assert [event["type"] for event in seen[:2]] == ["response.created", "response.in_progress"]
    assert {event["response"]["id"] for event in seen if "response" in event} == {"resp_abc"}
    done: list[Any] = []
    item: Any = None
    for event in seen[2:-1]:
        assert event["output_index"] == len(done)
        match event["type"].removeprefix("response."):
            case "output_item.added":
                assert item is None
                item = event["item"]
                assert item["status"] == "in_progress"
            case "content_part.added":
                assert (event["item_id"], event["content_index"]) == (item["id"], 0)
                item["content"].append(event["part"])
            case "output_text.delta" | "reasoning_text.delta":
                item["content"][0]["text"] += event["delta"]
                item["content"][0].get("logprobs", []).extend(event.get("logprobs", []))
            case "refusal.delta":
                item["content"][0]["refusal"] += event["delta"]
            case "function_call_arguments.delta":
                assert event["item_id"] == item["id"]
                item["arguments"] += event["delta"]
            case "output_text.done" | "reasoning_text.done":
                assert event["text"] == item["content"][0]["text"]
            case "refusal.done":
                assert event["refusal"] == item["content"][0]["refusal"]
            case "content_part.done":
                assert event["part"] == item["content"][0]
            case "function_call_arguments.done":
                assert event["arguments"] == item["arguments"]
            case "output_item.done":
                assert event["item"] == {**item, "status": event["item"]["status"]}
                done.append(event["item"])
                item = None
            case other:
                raise AssertionError(other)
    assert item is None
    return done


def test_a_whole_answer() -> None:
    body = made.whole(output(), CALLING)
    assert body == {
        "id": "resp_abc",
        "object": "response",
        "created_at": 1796000000,
        "model": "public/name:q4",
        "store": False,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": [
            {
                "id": "rs_abc00",
                "type": "reasoning",
                "summary": [],
                "status": "completed",
                "content": [{"type": "reasoning_text", "text": "Hm."}],
            },
            {
                "id": "msg_abc01",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "annotations": [], "text": "I look.", "logprobs": []}],
            },
            {
                "id": "fc_abc02",
                "type": "function_call",
                "call_id": "call_0",
                "name": "weather",
                "arguments": '{"town":"Oslo"}',
                "status": "completed",
            },
            {
                "id": "fc_abc03",
                "type": "function_call",
                "call_id": "call_1",
                "name": "time",
                "arguments": "{}",
                "status": "completed",
            },
        ],
        "usage": {
            "input_tokens": 7,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 10,
        },
    }


def test_a_stream_grows_to_the_same_items() -> None:
    seen = made.streamed(output(), CALLING)
    assert follow(seen) == seen[-1]["response"]["output"]
    assert seen[-1] == {
        "type": "response.completed",
        "sequence_number": len(seen) - 1,
        "response": made.whole(output(), CALLING),
    }
    assert seen[0]["response"]["status"] == "in_progress"
    assert (seen[0]["response"]["output"], seen[0]["response"]["usage"]) == ([], None)


@given(answers())
def test_streamed_and_whole_are_one(pieces: list[Piece]) -> None:
    seen = made.streamed(output(), pieces)
    follow(seen)
    assert seen[-1]["response"] == made.whole(output(), pieces)


PIECES = st.sampled_from([content("a"), reasoning("b"), refusal("c"), Piece(), finish("stop")])


@given(st.lists(PIECES))
def test_whatever_order_an_engine_has(pieces: list[Piece]) -> None:
    seen = made.streamed(output(), pieces)
    assert follow(seen) == seen[-1]["response"]["output"]
    said = "".join(str(event["delta"]) for event in seen if event["type"] == "response.output_text.delta")
    assert said == "a" * sum(bool(piece.content) for piece in pieces)


@pytest.mark.parametrize(
    ("reason", "kind", "details"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
    ],
)
def test_how_an_answer_ends(reason: str, kind: str, details: Any) -> None:
    pieces = [reasoning("a"), content("b"), finish(reason)]
    last = made.streamed(output(), pieces)[-1]
    assert last["type"] == f"response.{kind}"
    response = last["response"]
    assert (response["status"], response["incomplete_details"]) == (kind, details)
    # Only what was being said is cut.
    assert [item["status"] for item in response["output"]] == ["completed", kind]


def test_an_answer_without_a_word_is_an_empty_message() -> None:
    seen = made.streamed(output(), [finish("stop")])
    (item,) = follow(seen)
    assert (item["type"], item["content"][0]["text"]) == ("message", "")
    assert seen[-1]["response"] == made.whole(output(), [finish("stop")])


def test_logprobs_go_with_their_text() -> None:
    one, two, three = ({"token": t, "logprob": -1.0, "bytes": [1], "top_logprobs": []} for t in "abc")
    # The second entry's text is held back a piece, the third has none.
    late = Piece(logprobs=content("", content=[two]).logprobs)
    pieces = [
        content("a", content=[one]),
        late,
        content("b"),
        Piece(logprobs=content("", content=[three]).logprobs),
    ]
    seen = made.streamed(output(), [*pieces, finish("stop")])
    deltas = [event["logprobs"] for event in seen if event["type"] == "response.output_text.delta"]
    assert deltas == [[one], [two]]
    (done,) = [event for event in seen if event["type"] == "response.output_text.done"]
    assert done["logprobs"] == [one, two, three]
    assert seen[-1]["response"] == made.whole(output(), [*pieces, finish("stop")])


def test_tokens_of_a_foreign_cache_are_not_told() -> None:
    usage = made.whole(output(), [content("a"), finish("stop")], Usage(7, 3, 10))["usage"]
    assert usage["input_tokens_details"]["cached_tokens"] == 0


@pytest.mark.parametrize("pieces", [[], [content("a"), opened(0)]])
def test_a_failure_is_told_in_both_ways_that_clients_look_for(pieces: list[Piece]) -> None:
    failing = output()
    frames = b"".join(failing.piece(0, piece) for piece in pieces)
    fault = Fault("context_length_exceeded", "too long", "shorten it", param="input")
    *_, failed, error = seen = events(frames + failing.error(fault))
    assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": fault.code, "message": "too long: shorten it"}
    statuses = [item["status"] for item in failed["response"]["output"]]
    assert statuses == ["completed", "incomplete"][: len(pieces)]
    assert error["type"] == "error"
    assert (error["code"], error["message"], error["param"]) == (fault.code, "too long: shorten it", "input")
    assert error["error"]["code"] == fault.code


def test_headers_of_a_stream() -> None:
    assert output().media_type == "text/event-stream"
    assert output().heartbeat.startswith(b":")
    assert output().close(USAGE, Spent()).endswith(b"\n\n")
