"""Tool calls, whole and with objects as arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.ollama.calls import Calls
from relaydesk.core.gateway.piece import Piece


def opens(index: int, name: str, text: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": text}
    return {"index": index, "id": f"id{index}", "type": "function", "function": function}


def more(index: int, text: str) -> dict[str, Any]:
    return {"index": index, "function": {"arguments": text}}


def piece(*deltas: dict[str, Any], finish: str = "") -> Piece:
    return Piece(
        calls=json.dumps(deltas).encode() if deltas else b"",
        finish=json.dumps(finish).encode() if finish else b"",
    )


def run(*pieces: Piece) -> list[list[dict[str, Any]]]:
    calls = Calls()
    return [json.loads(found) for each in pieces if (found := calls.take(each))]


def test_a_call_is_said_once_it_is_complete() -> None:
    found = run(
        piece(opens(0, "f")),
        piece(more(0, '{"x"')),
        piece(more(0, ":1}")),
        piece(opens(1, "g", '{"y":')),
        piece(more(1, "[2]}")),
        piece(finish="tool_calls"),
        piece(finish="tool_calls"),
    )
    assert found == [
        [{"id": "id0", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}}],
        [{"id": "id1", "function": {"index": 1, "name": "g", "arguments": {"y": [2]}}}],
    ]


def test_two_calls_in_one_piece() -> None:
    found = run(piece(opens(0, "f", "{}"), opens(1, "f", ""), finish="tool_calls"))
    assert [[each["function"] for each in calls] for calls in found] == [
        [{"index": 0, "name": "f", "arguments": {}}, {"index": 1, "name": "f", "arguments": {}}]
    ]


def test_text_in_arguments_is_kept_and_the_line_stays_one() -> None:
    calls = Calls()
    arguments = '{\n "text": "a\\nb \\u00e9 \U0001f60a",\r\n "n": 1.50\n}'
    found = calls.take(piece(opens(0, "f", arguments), finish="tool_calls"))
    assert b"\n" not in found and b"\r" not in found
    assert b"1.50" in found
    assert json.loads(found)[0]["function"]["arguments"] == {"text": "a\nb é \U0001f60a", "n": 1.5}


@pytest.mark.parametrize("arguments", ['{"x":', "[1]", "3", '"x"', "null", "{}x", "[" * 100_000])
def test_arguments_that_are_no_object_are_an_error(arguments: str) -> None:
    with pytest.raises(PeerError) as caught:
        run(piece(opens(0, "f", arguments), finish="tool_calls"))
    assert caught.value.fault.code == "engine_failed"


def test_a_call_that_the_limit_cut_off_is_left_out() -> None:
    assert run(piece(opens(0, "f", '{"x":')), piece(finish="length")) == []
    found = run(piece(opens(0, "f", "{}")), piece(opens(1, "g", '{"x":'), finish="length"))
    assert [[each["function"]["name"] for each in calls] for calls in found] == [["f"]]
    with pytest.raises(PeerError):
        run(piece(opens(0, "f", '{"x":')), piece(opens(1, "g"), finish="length"))


def test_going_back_to_a_call_that_was_said_is_an_error() -> None:
    with pytest.raises(PeerError):
        run(piece(opens(0, "f", "{}")), piece(opens(1, "g")), piece(more(0, "x")))


ARGUMENTS = st.dictionaries(st.text(), st.one_of(st.integers(-(2**53), 2**53), st.text(), st.booleans()))


@given(st.lists(ARGUMENTS, min_size=1, max_size=4), st.data())
def test_however_it_is_cut_the_calls_are_the_same(all_arguments: list[Any], data: st.DataObject) -> None:
    pieces = []
    for number, arguments in enumerate(all_arguments):
        text = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()))
        cut = data.draw(st.integers(0, len(text)))
        pieces += [piece(opens(number, "f", text[:cut])), piece(more(number, text[cut:]))]
    found = [call for calls in run(*pieces, piece(finish="tool_calls")) for call in calls]
    assert [call["function"]["arguments"] for call in found] == all_arguments
    assert [call["function"]["index"] for call in found] == list(range(len(all_arguments)))
