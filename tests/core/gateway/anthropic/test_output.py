"""Answers as content blocks, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.anthropic.ending import Ending
from relaydesk.core.gateway.anthropic.output import MessagesOutput
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.usage import Usage
from tests.support import pieces as made
from tests.support.pieces import ME, answers, content, events, finish, more, opened, reasoning, refusal

CALLING = [
    reasoning("Hm."),
    content("I look"),
    content("."),
    opened(0, "weather", '{"town":'),
    more(0, '"Oslo"}'),
    opened(1, "time"),
    finish("tool_calls"),
]


def output(**more: Any) -> MessagesOutput:
    return MessagesOutput(ME, Ending(), **more)


def follow(seen: list[Any]) -> Any:
    """The message as a client puts it together from events, checking their order on the way."""
    first, *middle, last_delta, stop = seen
    assert (first["type"], stop) == ("message_start", {"type": "message_stop"})
    message = first["message"]
    inputs: dict[int, str] = {}
    open_ = False
    for event in middle:
        index = event["index"]
        if event["type"] == "content_block_start":
            assert (open_, index) == (False, len(message["content"]))
            message["content"].append(event["content_block"])
            open_ = True
            continue
        assert (open_, index) == (True, len(message["content"]) - 1)
        block = message["content"][index]
        if event["type"] == "content_block_stop":
            open_ = False
            if block["type"] == "tool_use":
                block["input"] = json.loads(inputs.get(index) or "{}")
            continue
        delta = event["delta"]
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
            case "input_json_delta":
                inputs[index] = inputs.get(index, "") + delta["partial_json"]
            case other:
                raise AssertionError(other)
    assert not open_
    assert last_delta["type"] == "message_delta"
    return {**message, **last_delta["delta"], "usage": last_delta["usage"]}


def test_a_whole_answer() -> None:
    assert made.whole(output(), CALLING) == {
        "id": "msg_abc",
        "type": "message",
        "role": "assistant",
        "model": "public/name:q4",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "call_0", "name": "weather", "input": {"town": "Oslo"}},
            {"type": "tool_use", "id": "call_1", "name": "time", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens": 3,
        },
    }


@given(answers())
def test_streamed_and_whole_are_one(pieces: list[Piece]) -> None:
    assert follow(made.streamed(output(), pieces)) == made.whole(output(), pieces)


PIECES = st.sampled_from([content("a"), reasoning("b"), refusal("c"), Piece(), finish("stop")])


@given(st.lists(PIECES))
def test_whatever_order_an_engine_has(pieces: list[Piece]) -> None:
    blocks = follow(made.streamed(output(), pieces))["content"]
    said = "".join(block.get("text", "") for block in blocks)
    assert said.count("a") == sum(bool(piece.content) for piece in pieces)
    assert said.count("c") == sum(bool(piece.refusal) for piece in pieces)


def test_a_stream_opens_with_zeros() -> None:
    start = made.streamed(output(), [content("a"), finish("stop")])[0]["message"]
    assert set(start["usage"].values()) == {0}
    assert (start["content"], start["stop_reason"]) == ([], None)


def test_thoughts_that_are_not_wanted_are_left_out() -> None:
    pieces = [reasoning("Hm."), content("a"), finish("stop")]
    for message in (
        made.whole(output(thoughts=False), pieces),
        follow(made.streamed(output(thoughts=False), pieces)),
    ):
        assert message["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("eos", "end_turn")],
)
def test_how_an_answer_ends(finish_reason: str, stop_reason: str) -> None:
    pieces = [content("a"), finish(finish_reason)]
    assert made.whole(output(), pieces)["stop_reason"] == stop_reason
    assert follow(made.streamed(output(), pieces))["stop_reason"] == stop_reason


def test_the_stop_sequence_that_ended_it_is_named() -> None:
    ending = Ending()
    ending.matched = 'say "so"'
    pieces = [content("a"), finish("stop")]
    for message in (
        made.whole(MessagesOutput(ME, ending), pieces),
        follow(made.streamed(MessagesOutput(ME, ending), pieces)),
    ):
        assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", 'say "so"')


def test_a_call_is_what_it_ended_with_whatever_the_engine_calls_it() -> None:
    pieces = [opened(0, arguments="{}"), finish("stop")]
    assert made.whole(output(), pieces)["stop_reason"] == "tool_use"
    assert follow(made.streamed(output(), pieces))["stop_reason"] == "tool_use"


def test_a_call_that_was_cut_off_has_no_input() -> None:
    body = made.whole(
        output(), [opened(0, arguments='{"a": 1}'), opened(1, arguments='{"a": '), finish("length")]
    )
    assert [block["input"] for block in body["content"]] == [{"a": 1}, {}]
    assert body["stop_reason"] == "max_tokens"


@pytest.mark.parametrize(
    "pieces",
    [
        [opened(0, arguments="nonsense"), finish("tool_calls")],
        [opened(0, arguments="[1]"), finish("tool_calls")],
        [opened(0, arguments='{"a":'), finish("tool_calls")],
        # The limit cuts off the last one only.
        [opened(0, arguments='{"a":'), opened(1, arguments="{}"), finish("length")],
    ],
)
def test_a_call_that_cannot_be_said_is_the_engines_fault(pieces: list[Piece]) -> None:
    with pytest.raises(PeerError) as caught:
        made.whole(output(), pieces)
    assert caught.value.fault.code == "engine_failed"


def test_tokens_of_a_foreign_cache_are_not_told() -> None:
    usage = made.whole(output(), [content("a"), finish("stop")], Usage(7, 3, 10))["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (7, 0)


def test_an_error_is_the_last_event() -> None:
    (event,) = events(output().error(Fault("engine_failed", "gone")))
    assert event == {"type": "error", "error": {"type": "api_error", "message": "gone"}}


def test_silence_is_filled_with_pings() -> None:
    assert events(output().heartbeat) == [{"type": "ping"}]
    assert output().media_type == "text/event-stream"
