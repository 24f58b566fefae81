from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.embeddings.request import EmbedRequest, check_embedding, parse_embedding
from relaydesk.core.gateway.work import Capabilities

OWN = Capabilities(embedding=True, dimensions=576)
FAR = Capabilities(embedding=True, embeds_ids=True)


def parse(**fields: Any) -> EmbedRequest:
    return parse_embedding(json.dumps({"input": "Hi", **fields}).encode())


def refused(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        parse(**fields)
    return caught.value.fault.code, caught.value.fault.param


def unfit(capabilities: Capabilities, **fields: Any) -> tuple[str, str | None, str]:
    with pytest.raises(PeerError) as caught:
        check_embedding(parse(**fields), capabilities)
    return caught.value.fault.code, caught.value.fault.param, caught.value.fault.sentence


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ("a", ["input"]),
        (["a", "b"], ["input[0]", "input[1]"]),
        ([1, 2], ["input"]),
        ([[1], [2]], ["input[0]", "input[1]"]),
    ],
)
def test_inputs_in_their_four_forms(value: Any, places: list[str]) -> None:
    assert [each.at for each in parse(input=value).inputs] == places


def test_encodings() -> None:
    assert parse().encoding == parse(encoding_format="float").encoding == "float"
    assert parse(encoding_format=None).encoding == "float"
    assert parse(encoding_format="base64").encoding == "base64"
    for wrong in ("int8", "", "FLOAT", 3):
        assert refused(encoding_format=wrong) == ("invalid_request", "encoding_format")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": ["a", 1]}, "input[1]"),
        ({"input": {}}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"dimensions": 0}, "dimensions"),
        ({"dimensions": 2**40}, "dimensions"),
        ({"dimensions": "many"}, "dimensions"),
        ({"model": "m" * 300}, "model"),
        ({"user": 3}, "user"),
    ],
)
def test_wrong_values_are_refused_by_name(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields) == ("invalid_request", param)


def test_as_many_inputs_as_openai_takes() -> None:
    assert len(parse(input=["a"] * 2048).inputs) == 2048


def test_a_body_that_is_none() -> None:
    for body in (b"", b" ", b"[]", b"{", b'{"input":"\xff"}'):
        with pytest.raises(PeerError) as caught:
            parse_embedding(body)
        assert caught.value.fault.code in ("invalid_json", "invalid_request")


def test_unknown_fields_and_nulls() -> None:
    assert parse(foo=1, user=None, model=None, dimensions=None) == parse()


def test_token_ids_are_refused_where_they_would_mean_something_else() -> None:
    for value, place in (([1, 2], "input"), ([[1], [2]], "input[0]")):
        code, param, sentence = unfit(OWN, input=value)
        assert (code, param) == ("invalid_request", place)
        assert "check_embedding_ctx_length=False" in sentence
        check_embedding(parse(input=value), FAR)


def test_dimensions_are_the_models() -> None:
    check_embedding(parse(dimensions=576), OWN)
    check_embedding(parse(dimensions=100), FAR)
    code, param, sentence = unfit(OWN, dimensions=100)
    assert (code, param) == ("unsupported", "dimensions")
    assert "576" in sentence


def test_a_model_that_cannot() -> None:
    assert unfit(Capabilities())[:2] == ("unsupported", "model")


def test_the_bound_is_more_than_the_tokens() -> None:
    assert parse(input=["ab", "cde"]).bound >= 5 + 4


def test_no_repr_shows_what_is_embedded() -> None:
    assert "secret" not in repr(parse(input="secret"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
FIELDS = ("input", "model", "encoding_format", "dimensions", "user")


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_any_fields_give_a_request_or_a_refusal_that_names_one(fields: dict[str, Any]) -> None:
    count, named = 1, "input"
    try:
        count = len(parse(**fields).inputs)
    except PeerError as error:
        named = str(error.fault.param).split("[")[0]
    assert count >= 1
    assert named in FIELDS
