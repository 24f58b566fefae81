from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.access.credentials import LIMIT, MOST, presented, unauthorized

KEY = "k-0123:456789abcdef"


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "value",
    [
        f"Bearer {KEY}",
        f"bearer {KEY}",
        f"BEARER   {KEY}  ",
        f"Bearer\t{KEY}",
        f"Bearer Bearer {KEY}",
        f"Bearer {KEY}\r\n",
        f" {KEY}\n",
        KEY,
        basic(f"anyone:{KEY}"),
        basic(f":{KEY}"),
        basic(f":{KEY}\n"),
        basic(":Bearer " + KEY),
        f"basic  {basic(f':{KEY}')[6:]} ",
    ],
)
def test_spellings_of_one_key(value: str) -> None:
    assert presented([("AUTHORIZATION", value)]) == [KEY]


def test_a_user_name_is_the_key_where_there_is_no_password() -> None:
    assert presented([("authorization", basic("key-without-colon:"))]) == ["key-without-colon"]
    assert presented([("authorization", basic("key-without-colon"))]) == ["key-without-colon"]


@pytest.mark.parametrize("name", ["x-api-key", "X-Api-Key", "api-key", "API-KEY"])
def test_key_headers(name: str) -> None:
    assert presented([(name, f" {KEY}\n")]) == [KEY]
    assert presented([(name, f"Bearer {KEY}")]) == [KEY]


@pytest.mark.parametrize(
    "value",
    ["", " ", "Bearer", "Bearer ", "bearer Bearer", f"Token {KEY}", f"{KEY} {KEY}", f"Bearer {KEY} {KEY}",
     "Basic", "Basic ", "Basic !!!", "Basic " + KEY, "Basic Og==", "Basic Og", basic("a b:c d"),
     "Basic \udcff", f"Bearer {KEY}" + " " * LIMIT, "x" * (LIMIT + 1)],
)  # fmt: skip
def test_what_presents_no_key(value: str) -> None:
    assert presented([("Authorization", value)]) == []
    assert presented([("Proxy-Authorization", KEY), ("Cookie", KEY), ("x-key", KEY)]) == []


def test_several_are_looked_at_in_one_order() -> None:
    headers = [("api-key", "d"), ("x-api-key", "c"), ("Authorization", "Bearer a"), ("authorization", "b")]
    assert presented(headers) == ["a", "b", "c", "d"]
    assert presented([("Authorization", "Bearer "), ("x-api-key", KEY)]) == [KEY]
    assert presented([("Authorization", "Bearer undefined"), ("x-api-key", KEY)]) == ["undefined", KEY]
    assert presented([("Authorization", basic("proxy:its own password")), ("api-key", KEY)]) == [KEY]


def test_a_crowd_is_not_looked_at() -> None:
    assert len(presented([("x-api-key", str(number)) for number in range(100)])) == MOST


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        ([], "no API key was given"),
        (["undefined"], "no API key was given"),
        (["NULL", "none"], "no API key was given"),
        (["wrong"], "the API key is not valid"),
        (["undefined", "wrong"], "the API key is not valid"),
    ],
)
def test_a_missing_key_and_a_wrong_one(candidates: list[str], sentence: str) -> None:
    fault = unauthorized(candidates).fault
    assert (fault.code, fault.message) == ("invalid_api_key", sentence)
    assert "wrong" not in fault.sentence


NAMES = st.sampled_from(["Authorization", "x-api-key", "api-key", "Accept"])
VALUES = st.one_of(
    st.text(max_size=60),
    st.tuples(st.sampled_from(["Bearer ", "basic ", "", "Basic\t"]), st.text(max_size=40)).map("".join),
    st.text(max_size=30).map(lambda text: basic(text.encode("utf-8", "replace").decode())),
)


@given(headers=st.lists(st.tuples(NAMES, VALUES), max_size=12))
def test_a_candidate_is_one_visible_word(headers: list[tuple[str, str]]) -> None:
    found = presented(headers)
    assert len(found) <= MOST
    assert all(key and key.split() == [key] for key in found)


@given(key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=512))
def test_every_key_survives_every_spelling(key: str) -> None:
    if key.lower() == "bearer":
        return
    headers = [[("Authorization", f"Bearer {key}")], [("x-api-key", key)], [("api-key", key)],
               [("Authorization", basic(f"user:{key}"))]]  # fmt: skip
    assert all(presented(each) == [key] for each in headers)
