"""Tool-call deltas of careless engines, made regular."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.toolcalls import CallTracker


def run(*deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    tracker = CallTracker("call_p")
    out: list[dict[str, Any]] = []
    for delta in deltas:
        found = tracker.read(json.dumps(delta).encode())
        out += json.loads(found) if found else []
    return out


def delta(
    index: int | None = None, call_id: str | None = None, name: str | None = None, args: Any = None
) -> Any:
    function = {k: v for k, v in (("name", name), ("arguments", args)) if v is not None}
    return {k: v for k, v in (("index", index), ("id", call_id), ("function", function)) if v is not None}


TWO = [
    {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
    {"index": 0, "function": {"arguments": '{"x":1}'}},
    {"index": 1, "id": "b", "type": "function", "function": {"name": "f", "arguments": ""}},
    {"index": 1, "function": {"arguments": '{"x":2}'}},
]


@pytest.mark.parametrize("indexes", [(0, 1), (0, 0), (None, None), (3, 9)])
@pytest.mark.parametrize("repeat", [False, True])
def test_two_calls_stay_two(indexes: tuple[int | None, int | None], repeat: bool) -> None:
    stream = []
    for index, call_id, args in zip(indexes, "ab", ('{"x":1}', '{"x":2}'), strict=True):
        stream.append([delta(index, call_id, "f", "")])
        again = (call_id, "f") if repeat else (None, None)
        stream.append([delta(index, *again, args)])
    assert run(*stream) == TWO


def test_whole_calls_without_ids_get_their_own() -> None:
    found = run([delta(None, None, "f", {"x": 1}), delta(None, "", "g", "{}")])
    assert [(c["index"], c["id"], c["function"]["name"]) for c in found] == [
        (0, "call_p_0", "f"),
        (1, "call_p_1", "g"),
    ]
    assert json.loads(found[0]["function"]["arguments"]) == {"x": 1}


def test_an_id_used_twice_is_made_unique() -> None:
    assert [c["id"] for c in run([delta(0, "a", "f", "{}"), delta(1, "a", "f", "{}")])] == ["a", "call_p_1"]


def test_calls_that_interleave_at_one_index_are_told_apart_by_id() -> None:
    found = run([delta(0, "a", "f", "1")], [delta(0, "b", "g", "2")], [delta(0, "a", None, "3")])
    assert [c["index"] for c in found] == [0, 1, 0]


@pytest.mark.parametrize("bad", [b"{}", b"[3]", b'[{"index":0}]', b'[{"function":{"name":3}}]'])
def test_what_is_no_call_is_the_engines_failure(bad: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        CallTracker("p").read(bad)
    assert caught.value.fault.code == "engine_failed"


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.text(max_size=6), min_size=1, max_size=4), min_size=1, max_size=4),
    st.sampled_from(["own", "zero", "none"]),
)
def test_arguments_join_to_what_each_call_said(calls: list[list[str]], style: str) -> None:
    stream = []
    for number, pieces in enumerate(calls):
        index = {"own": number, "zero": 0, "none": None}[style]
        stream.append([delta(index, f"id{number}", "f", pieces[0])])
        stream += [[delta(index, None, None, piece)] for piece in pieces[1:]]
    joined = [""] * len(calls)
    named = [0] * len(calls)
    for entry in run(*stream):
        joined[entry["index"]] += entry["function"]["arguments"]
        named[entry["index"]] += "name" in entry["function"]
    assert joined == ["".join(pieces) for pieces in calls]
    assert named == [1] * len(calls)
