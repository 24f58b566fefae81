"""/api/embed and /api/embeddings, from a client's bytes to what is embedded, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ollama import EmbeddingsResponse, EmbedResponse

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.embeddings.request import EmbedRequest, check_embedding
from relaydesk.core.gateway.ollama.embed import (
    embed_body,
    embed_request,
    embeddings_body,
    embeddings_request,
)
from relaydesk.core.gateway.output import Spent
from relaydesk.core.gateway.work import Capabilities
from tests.core.gateway.ollama.test_chat import VALUES


def ask(**fields: Any) -> EmbedRequest:
    return embed_request(json.dumps(fields).encode())


def old(**fields: Any) -> EmbedRequest:
    return embeddings_request(json.dumps(fields).encode())


def texts(request: EmbedRequest) -> list[tuple[str, str]]:
    return [(json.loads(each.body), each.at) for each in request.inputs]


def test_one_text_or_many() -> None:
    assert texts(ask(input="hi")) == [("hi", "input")]
    assert texts(ask(input=["a", 'say "b"'])) == [("a", "input[0]"), ('say "b"', "input[1]")]
    request = ask(model="m", input="hi", dimensions=64, keep_alive="1m", options={"num_ctx": 8192})
    assert (request.model, request.dimensions, request.keep_alive_s) == ("m", 64, 60)
    assert (ask(input="hi").model, ask(input="hi").keep_alive_s) == (None, None)


def test_a_text_that_is_too_long_is_cut_unless_that_was_declined() -> None:
    assert ask(input="hi").truncate
    assert ask(input="hi", truncate=None).truncate
    assert not ask(input="hi", truncate=False).truncate


def test_the_older_route_has_one_prompt_that_is_never_cut() -> None:
    request = old(model="m", prompt="hi", keep_alive=0, truncate=True)
    assert texts(request) == [("hi", "prompt")]
    assert (request.model, request.keep_alive_s, request.truncate) == ("m", 0, False)


@pytest.mark.parametrize("nothing", [None, "", []])
def test_without_a_text_there_is_nothing_to_embed(nothing: object) -> None:
    assert ask(input=nothing).inputs == ask().inputs == ()
    assert old().inputs == old(prompt="").inputs == old(prompt=None).inputs == ()
    check_embedding(ask(), Capabilities(embedding=True))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": 3}, "input"),
        ({"input": {}}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": ["a", 3]}, "input[1]"),
        ({"input": [1, 2]}, "input"),
        ({"input": [[1], [2]]}, "input[0]"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "dimensions": "x"}, "dimensions"),
        ({"input": "a", "keep_alive": "x"}, "keep_alive"),
        ({"input": "a", "truncate": 1}, "truncate"),
        ({"input": "a", "options": {"num_ctx": "x"}}, "options.num_ctx"),
        ({"input": "a", "model": 3}, "model"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(PeerError) as caught:
        ask(**fields)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", param)


@pytest.mark.parametrize("prompt", [3, ["a"], {}])
def test_the_older_route_takes_a_text_only(prompt: object) -> None:
    with pytest.raises(PeerError) as caught:
        old(prompt=prompt)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", "prompt")


def test_answers_as_clients_read_them() -> None:
    body = embed_body("m:latest", [b"[0.5,1.0]", b"[0.25,2.0]"], 7, Spent(total=9, load=3))
    assert json.loads(body) == {
        "model": "m:latest",
        "embeddings": [[0.5, 1.0], [0.25, 2.0]],
        "total_duration": 9,
        "load_duration": 3,
        "prompt_eval_count": 7,
    }
    assert EmbedResponse.model_validate_json(body).embeddings == [[0.5, 1.0], [0.25, 2.0]]
    assert json.loads(embed_body("m", [], 0, Spent()))["embeddings"] == []
    assert EmbeddingsResponse.model_validate_json(embeddings_body([b"[0.5]"])).embedding == [0.5]
    assert embeddings_body([]) == b'{"embedding":[]}'


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.sampled_from(["model", "input", "prompt", "truncate", "dimensions", "keep_alive", "options"]),
        VALUES,
    ),
    st.sampled_from([embed_request, embeddings_request]),
)
def test_any_body_is_understood_or_refused_by_name(fields: dict[str, Any], request_of: Any) -> None:
    try:
        request = request_of(json.dumps(fields).encode())
    except PeerError as error:
        param = error.fault.param
        assert param is not None
        assert param.partition(".")[0].partition("[")[0] in fields
        return
    assert all(each.is_text for each in request.inputs)
