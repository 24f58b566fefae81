from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.config.listen import Listen, parse_listen


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        (":8383", "", 8383, False),
        ("127.0.0.1:0", "127.0.0.1", 0, True),
        ("127.9.9.9:1", "127.9.9.9", 1, True),
        ("[::1]:8383", "::1", 8383, True),
        ("[::]:8383", "::", 8383, False),
        ("[0:0::1]:80", "::1", 80, True),
        ("LOCALHOST:65535", "localhost", 65535, True),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        ("hub.lan:80", "hub.lan", 80, False),
        ("[fe80::1%eth0]:80", "fe80::1%eth0", 80, False),
    ],
)
def test_forms(text: str, host: str, port: int, loopback: bool) -> None:
    parsed = parse_listen(text)
    assert (parsed.host, parsed.port, parsed.loopback_only) == (host, port, loopback)


@pytest.mark.parametrize(
    "text",
    ["", "8383", ":", "host", "::1:80", "[::1]", "[::1]80", "[1.2.3.4]:80", ":65536", ":-1", ":8 0", ":８３",
     "a b:80", "256.0.0.1:80", "1.2.3:80", "-x:80", "http://x:80", "x/y:80", "[]:80",
     "\n:80", ":80\n", "x" * 254 + ":80"],
)  # fmt: skip
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_listen(text)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.just(""), st.just("localhost"), st.ip_addresses().map(str)),
    st.integers(0, 65535),
)
def test_round_trip(host: str, port: int) -> None:
    listen = Listen(host, port)
    assert parse_listen(str(listen)) == listen
    if host not in {"", "localhost"}:
        assert listen.loopback_only == ipaddress.ip_address(host).is_loopback


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="0123456789.:[]abclohst%-_ \n\x00é", max_size=24))
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        parsed = parse_listen(text)
    except ValueError:
        return
    assert 0 <= parsed.port <= 65535
    assert parse_listen(str(parsed)) == parsed
