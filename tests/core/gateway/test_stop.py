"""Stop texts: never said, what stands before them always, wherever the pieces are cut (report B12)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.piece import ChoiceStream, Piece
from relaydesk.core.gateway.stop import MAX_AFTER, StopReader, stopped
from tests.support.scripted_engine import piece, usage


def entry(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": -1.0, "top_logprobs": []}


def read(
    texts: list[str], stops: list[str], *, finish: str | None = "stop", logprobs: bool = False
) -> list[Piece]:
    reader = StopReader(ChoiceStream(), stops)
    found = []
    for text in texts:
        choice = {"delta": {"content": text}, "finish_reason": None}
        if logprobs:
            choice["logprobs"] = {"content": [entry(text)]}
        found.append(reader.read(json.dumps({"choices": [choice]}).encode()))
    if finish:
        found.append(reader.read(piece(None, finish)))
    return [each for each in found if each is not None]


def said(pieces: list[Piece]) -> list[str]:
    return [json.loads(each.content) for each in pieces if each.content]


@pytest.mark.parametrize(
    ("texts", "stops", "found"),
    [
        (["alpha be", "ta gam", "ma delta"], ["beta gamma"], ["alpha "]),
        (["Mars?", "\n"], ["\n"], ["Mars?"]),
        (["alpha be", "ta gam", "ble"], ["beta gamma"], ["alpha ", "beta gamble"]),
        (["aaa", "b"], ["aab"], ["a"]),
        (["a", "a", "a", "b"], ["aab"], ["a"]),
        (["ab", "ab", "ac", "x"], ["ababac"], []),
        (["ab", "ab", "ab", "ac"], ["ababac"], ["ab"]),
        (["one two", " three"], ["three", "two thr"], ["one "]),
        (["abc"], ["abc", "c"], []),
        (["ab", "c"], ["bcd", "c"], ["a", "b"]),
        (["😊", "😊x"], ["😊x"], ["😊"]),
        (['say "hi"', "\\n\n"], ['"\\n'], ['say "hi']),
    ],
)
def test_stops(texts: list[str], stops: list[str], found: list[str]) -> None:
    assert said(read(texts, stops)) == found


@pytest.mark.parametrize(
    ("texts", "matched"), [(["one </", "a> two"], "</a>"), (["one STOP"], "STOP"), (["one STO"], "")]
)
def test_what_ended_it_is_known(texts: list[str], matched: str) -> None:
    reader = StopReader(ChoiceStream(), ["</a>", "STOP"])
    for text in texts:
        reader.read(piece(text))
    assert reader.matched == matched


def test_the_choice_ends_with_the_stop_text_once() -> None:
    pieces = read(["a", "bX", "c", "d"], ["X"])
    assert [each.finish for each in pieces] == [b"", b'"stop"']
    assert said(pieces) == ["a", "b"]


@pytest.mark.parametrize("finish", ["length", "stop"])
def test_what_was_held_back_is_said_at_the_end(finish: str) -> None:
    pieces = read(["abc"], ["cd"], finish=finish)
    assert said(pieces) == ["ab", "c"]
    assert pieces[-1].finish == json.dumps(finish).encode()


def test_reasoning_and_calls_pass() -> None:
    reader = StopReader(ChoiceStream(), ["X"])
    call = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '"X"'}}]
    for delta, field in (({"reasoning_content": "aXb"}, "reasoning"), ({"tool_calls": call}, "calls")):
        found = reader.read(json.dumps({"choices": [{"delta": delta}]}).encode())
        assert found is not None and b"X" in getattr(found, field)


def test_without_stop_texts_nothing_stands_between() -> None:
    inner = ChoiceStream()
    assert stopped(inner, ()) is inner
    assert isinstance(stopped(inner, ("x",)), StopReader)


def test_logprobs_go_with_the_first_character_of_their_token() -> None:
    def tokens(pieces: list[Piece]) -> list[list[str]]:
        return [[each["token"] for each in json.loads(p.logprobs)["content"]] for p in pieces if p.logprobs]

    assert tokens(read(["alpha be", "ta gam", "ma delta"], ["beta gamma"], logprobs=True)) == [["alpha be"]]
    near = read(["alpha be", "ta gam", "ble"], ["beta gamma"], logprobs=True)
    assert tokens(near) == [["alpha be"], ["ta gam", "ble"]]
    assert tokens(read(["a", "b", "c"], ["bd", "cd"], logprobs=True, finish="length")) == [
        ["a"],
        ["b"],
        ["c"],
    ]


def test_an_engine_that_goes_on_is_left() -> None:
    reader = StopReader(ChoiceStream(), ["X"])
    reader.read(piece("aX"))
    for _ in range(MAX_AFTER - 1):
        assert reader.read(piece("more")) is None
        assert not reader.tally.exact
    reader.read(piece("more"))
    assert reader.tally.exact and reader.tally.finish_reason == "stop"
    reader.end()


def test_an_engine_that_stops_too_has_the_last_word_on_usage() -> None:
    reader = StopReader(ChoiceStream(), ["X"])
    reader.read(piece("aX"))
    reader.read(piece(None, "stop"))
    reader.read(usage(7, 3))
    assert (reader.tally.prompt_tokens, reader.tally.completion_tokens, reader.tally.exact) == (7, 3, True)
    reader.end()


def test_text_that_is_no_json_is_the_engines_failure() -> None:
    with pytest.raises(PeerError) as caught:
        StopReader(ChoiceStream(), ["X"]).read(rb'{"choices":[{"delta":{"content":"\x"}}]}')
    assert caught.value.fault.code == "engine_failed"


ALPHABET = st.text(alphabet="ab😊", max_size=12)


@settings(max_examples=300, deadline=None)
@given(
    ALPHABET,
    st.lists(st.text(alphabet="ab😊", min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.integers(0, 12), max_size=5),
    st.booleans(),
)
def test_whatever_the_cuts_the_text_is_that_before_the_first_complete_stop(
    text: str, stops: list[str], cuts: list[int], logprobs: bool
) -> None:
    ends = [(text.find(stop) + len(stop), -len(stop)) for stop in stops if stop in text]
    expected = text[: min(ends)[0] + min(ends)[1]] if ends else text
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    parts = [text[a:b] for a, b in pairwise(places)]
    pieces = read(parts, stops, logprobs=logprobs)
    assert "".join(said(pieces)) == expected
    assert [each.finish for each in pieces[:-1]] == [b""] * (len(pieces) - 1)
    assert pieces[-1].finish == b'"stop"'
    folded = Answer()
    for each in pieces:
        folded.add(each)
    assert json.loads(folded.content or b'""') == expected
    if logprobs:
        tokens = [json.loads(bytes(raw))["token"] for raw in (folded.logprobs or {}).get("content", [])]
        begins = [sum(map(len, parts[:number])) for number in range(len(parts))]
        assert tokens == [part for part, at in zip(parts, begins, strict=True) if at < len(expected)]
