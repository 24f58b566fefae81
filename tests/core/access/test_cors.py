from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.access.cors import preflight, shared

ORIGIN = "app://obsidian.md"


def test_a_preflight_is_given_back_what_it_asks_for() -> None:
    names = "authorization,content-type,x-stainless-foo-new,openai-beta"
    headers = preflight(ORIGIN, "POST", names, private_network=False)
    assert headers == {
        "Access-Control-Allow-Origin": ORIGIN,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": names,
        "Access-Control-Max-Age": "600",
    }
    asked = preflight(ORIGIN, "DELETE", "", private_network=True)
    assert asked["Access-Control-Allow-Private-Network"] == "true"
    assert "Access-Control-Allow-Headers" not in asked


@pytest.mark.parametrize("names", ["a b", "a,", ",", "a,,b", "a: b", "a\r\nSet-Cookie: x", "é", "(", "a;b"])
def test_what_is_no_list_of_names_is_not_given_back(names: str) -> None:
    headers = preflight(ORIGIN, "PO ST", names, private_network=False)
    assert set(headers) == {"Access-Control-Allow-Origin", "Access-Control-Max-Age"}


@given(method=st.text(max_size=20), names=st.text(max_size=60))
def test_no_header_is_smuggled_in(method: str, names: str) -> None:
    for value in preflight(ORIGIN, method, names, private_network=False).values():
        assert value.isascii()
        assert value.isprintable()


def test_scripts_see_what_they_need_and_no_cookie_is_ever_allowed() -> None:
    headers = shared(ORIGIN)
    exposed = headers["Access-Control-Expose-Headers"].split(", ")
    assert {"x-request-id", "retry-after", "x-should-retry", "x-ratelimit-remaining-tokens"} <= set(exposed)
    assert headers["Access-Control-Allow-Origin"] == ORIGIN
    for each in (headers, preflight(ORIGIN, "POST", "a", private_network=True)):
        assert "Access-Control-Allow-Credentials" not in each
