from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.ids import accept_request_id, new_request_id, parse_model_name
from tests.support.clock import FakeRng


@pytest.mark.parametrize(
    "name", ["a", "qwen3-8b", "org/model:Q4_K_M", "llama3.2:latest", "x@y+z", "A" * 128, "m_", "c++"]
)
def test_names_clients_use(name: str) -> None:
    assert parse_model_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " a",
        "a ",
        "-a",
        "/a",
        "a/",
        "a//b",
        "a..b",
        "../a",
        "net/x",
        "a\n",
        "a\x1b",
        "ä",
        "A" * 129,
        "a b",
    ],
)
def test_names_refused(name: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse_model_name(name)
    assert caught.value.fault.code == "invalid_request"
    assert caught.value.fault.param == "name"


@given(st.text(max_size=140))
@settings(max_examples=200, deadline=None)
def test_an_accepted_name_is_plain_and_bounded(text: str) -> None:
    try:
        name = parse_model_name(text)
    except LocalError:
        return
    assert name == text
    assert 1 <= len(name) <= 128
    assert re.fullmatch(r"[\x21-\x7e]+", name)
    assert ".." not in name


def test_request_ids_are_new_and_acceptable() -> None:
    rng = FakeRng()
    ids = {new_request_id(rng) for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"req_[0-9a-f]{24}", made) for made in ids)
    assert all(accept_request_id(made) == made for made in ids)


@pytest.mark.parametrize("text", [None, "", "a b", "a\r\nSet-Cookie: x", "x" * 65, "-a", "ü"])
def test_foreign_request_ids_refused(text: str | None) -> None:
    assert accept_request_id(text) is None


def test_own_request_id_of_a_client_kept() -> None:
    assert accept_request_id("trace-1.A_b") == "trace-1.A_b"
    assert accept_request_id("x" * 64) == "x" * 64
