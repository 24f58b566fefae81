from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.completions.prompt import Prompt, parse_prompts


def parsed(value: Any, limit: int = 128) -> list[tuple[str, Any, int | None]]:
    found = parse_prompts(Raw(json.dumps(value).encode()), limit=limit)
    return [(prompt.at, json.loads(prompt.body), prompt.largest) for prompt in found]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Hi", [("prompt", "Hi", None)]),
        ("", [("prompt", "", None)]),
        (["a", "b"], [("prompt[0]", "a", None), ("prompt[1]", "b", None)]),
        ([7, 9, 8], [("prompt", [7, 9, 8], 9)]),
        ([[7], [1, 2]], [("prompt[0]", [7], 7), ("prompt[1]", [1, 2], 2)]),
    ],
)
def test_the_four_forms(value: Any, found: Any) -> None:
    assert parsed(value) == found


@pytest.mark.parametrize(
    ("value", "param"),
    [
        (None, "prompt"),
        ([], "prompt"),
        ([[]], "prompt[0]"),
        ([[1], []], "prompt[1]"),
        (3, "prompt"),
        (True, "prompt"),
        ({}, "prompt"),
        (["a", 1], "prompt[1]"),
        (["a", None], "prompt[1]"),
        ([1, "a"], "prompt"),
        ([1, [2]], "prompt"),
        ([[1], 2], "prompt"),
        ([[1, [2]]], "prompt"),
        ([[[1]]], "prompt"),
        ([[1], "a"], "prompt"),
        ([-1], "prompt"),
        ([1.5], "prompt"),
        ([1e3], "prompt"),
        ([None], "prompt"),
        (["a"] * 9, "prompt"),
        ([[1]] * 9, "prompt"),
    ],
)
def test_other_forms_are_refused_by_name(value: Any, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        parsed(value, limit=8)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", param)


def test_white_space_between_lists() -> None:
    data = b"[ [1 , 2]\n,\t[ 3 ] ]"
    assert [json.loads(prompt.body) for prompt in parse_prompts(Raw(data))] == [[1, 2], [3]]


def test_a_list_of_megabytes_is_not_decoded() -> None:
    data = b"[" + b",".join([b"12345"] * 100_000) + b"]"
    (prompt,) = parse_prompts(Raw(data))
    assert prompt == Prompt(data)


@pytest.mark.parametrize("data", [b'["",' + b"1," * 300_000 + b"1]", b"[[1]," + b"1," * 300_000 + b"1]"])
def test_a_list_of_very_many_entries_is_refused(data: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        parse_prompts(Raw(data))
    assert caught.value.fault.param == "prompt"


def test_no_repr_shows_a_prompt() -> None:
    assert "secret" not in repr(parse_prompts(Raw(b'["secret"]')))


IDS = st.lists(st.integers(0, 10**6), min_size=1, max_size=6)


@given(st.text() | st.lists(st.text(), min_size=1, max_size=6) | IDS | st.lists(IDS, min_size=1, max_size=6))
def test_what_goes_to_the_engine_is_what_was_sent(value: Any) -> None:
    found = [body for _, body, _ in parsed(value)]
    listed = isinstance(value, list) and not isinstance(value[0], int)
    assert found == (value if listed else [value])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


@given(JSON)
def test_anything_else_is_a_refusal(value: Any) -> None:
    fault, found = None, []
    try:
        found = parsed(value)
    except PeerError as error:
        fault = error.fault
    assert fault is None or (fault.code == "invalid_request" and str(fault.param).startswith("prompt"))
    for _, body, largest in found:
        assert isinstance(body, str) if largest is None else max(body) == largest
