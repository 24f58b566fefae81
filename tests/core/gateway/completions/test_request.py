from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.completions.request import (
    CompletionRequest,
    check_completion,
    parse_completion,
)
from relaydesk.core.gateway.work import Capabilities


def parse(**fields: Any) -> CompletionRequest:
    return parse_completion(json.dumps({"prompt": "Hi", **fields}).encode())


def refused(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        parse(**fields)
    return caught.value.fault.code, caught.value.fault.param


def test_a_bare_prompt_goes_on_to_its_end() -> None:
    request = parse()
    assert (request.limit, request.n, request.choices, request.stream, request.echo) == (
        None,
        1,
        1,
        False,
        False,
    )


def test_choices_of_the_first_prompt_come_first() -> None:
    request = parse(prompt=["a", "b"], n=2)
    assert request.choices == 4
    assert [request.prompt_of(choice).body for choice in range(4)] == [b'"a"', b'"a"', b'"b"', b'"b"']


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"n": 17}, "n"),
        ({"n": 0}, "n"),
        ({"logprobs": 6}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"suffix": 3}, "suffix"),
        ({"stop": 3}, "stop"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"user": 3}, "user"),
        ({"model": "m" * 300}, "model"),
        ({"prompt": ["a"] * 100, "n": 2}, "n"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ],
)
def test_wrong_values_are_refused_by_name(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields) == ("invalid_request", param)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"best_of": 2}, "best_of"),
        ({"best_of": 1, "n": 2}, "best_of"),
        ({"echo": True, "logprobs": 0}, "echo"),
        ({"echo": True, "prompt": [1, 2]}, "echo"),
        ({"messages": []}, "messages"),
        ({"tools": []}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields) == ("unsupported", param)


def test_null_unknown_and_harmless_fields() -> None:
    nulls = dict.fromkeys(("suffix", "stop", "seed", "max_tokens", "logprobs", "stream_options", "echo", "n"))
    assert parse(**nulls, foo=1, n_predict=4, best_of=1, user="u") == parse()
    assert parse(suffix="").suffix == b""
    assert parse(best_of=2, n=2).n == 2


def test_a_body_that_is_none() -> None:
    for body in (b"", b" ", b"[]", b"{", b'{"prompt":"\xff"}'):
        with pytest.raises(PeerError) as caught:
            parse_completion(body)
        assert caught.value.fault.code in ("invalid_json", "invalid_request")


def test_filling_in_needs_a_model_that_can() -> None:
    request = parse(suffix="after")
    with pytest.raises(PeerError) as caught:
        check_completion(request, Capabilities())
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "suffix")
    check_completion(request, Capabilities(infill=True))


def test_token_ids_outside_of_the_vocabulary() -> None:
    request = parse(prompt=[[1, 2], [3, 100]])
    with pytest.raises(PeerError) as caught:
        check_completion(request, Capabilities(vocabulary=100))
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", "prompt[1]")
    assert "100" in caught.value.fault.message
    check_completion(request, Capabilities(vocabulary=101))
    check_completion(request, Capabilities())  # a far server's is not known


def test_no_repr_shows_a_prompt() -> None:
    assert "secret" not in repr(parse(prompt="secret", suffix="secret"))


FIELDS = (
    "prompt",
    "suffix",
    "echo",
    "stream",
    "stream_options",
    "max_tokens",
    "n",
    "best_of",
    "stop",
    "seed",
    "temperature",
    "logit_bias",
    "logprobs",
    "user",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_any_fields_give_a_request_or_a_refusal_that_names_one(fields: dict[str, Any]) -> None:
    choices, named = 1, "prompt"
    try:
        choices = parse(**fields).choices
    except PeerError as error:
        named = str(error.fault.param).split("[")[0].split(".")[0]
    assert 1 <= choices <= 128
    assert named in FIELDS
