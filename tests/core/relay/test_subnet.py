from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.subnet import same_public_16, url_host


@pytest.mark.parametrize(
    ("one", "other"),
    [("203.0.113.5", "203.0.200.9"), ("8.8.0.0", "8.8.255.255"), ("100.64.0.1", "100.64.9.9"),
     ("198.51.100.1", "198.51.100.2"), ("192.0.2.1", "192.0.9.1"), ("240.0.0.1", "240.0.9.9"),
     ("0.0.0.1", "0.0.0.2")],
)  # fmt: skip
def test_one_public_16(one: str, other: str) -> None:
    assert same_public_16(one, other)
    assert same_public_16(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("203.0.113.5", "203.1.0.9"), ("127.0.0.1", "127.0.0.1"), ("10.0.0.1", "10.0.0.2"),
     ("172.16.0.1", "172.16.0.2"), ("172.31.9.1", "172.31.9.2"), ("192.168.0.1", "192.168.0.2"),
     ("169.254.0.1", "169.254.0.2"), ("0.0.0.0", "0.0.0.0"), ("224.0.0.1", "224.0.0.2"),
     ("a.example", "a.example"), ("a.example", "8.8.8.8"), ("2606:4700::1", "2606:4700::1"),
     ("::ffff:8.8.8.8", "::ffff:8.8.8.8"), ("8.8.8.8", "::ffff:8.8.8.8"), ("", ""), ("08.8.8.8", "08.8.8.8"),
     ("0x08.8.8.8", "0x08.8.8.8"), ("134744072", "134744072"), ("8.8", "8.8"), (" 8.8.8.8", " 8.8.8.8")],
)  # fmt: skip
def test_what_counts_as_diverse(one: str, other: str) -> None:
    assert not same_public_16(one, other)
    assert not same_public_16(other, one)


@given(st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_it_is_the_first_two_numbers(one: ipaddress.IPv4Address, other: ipaddress.IPv4Address) -> None:
    if same_public_16(str(one), str(other)):
        assert str(one).split(".")[:2] == str(other).split(".")[:2]


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://203.0.113.5", "203.0.113.5"), ("https://A.Example:8443/p", "a.example"),
     ("http://[2606::1]:80/", "2606::1"), ("https://u:p@8.8.8.8/", "8.8.8.8"), ("https://[::1", ""), ("", ""),
     ("nonsense", ""), ("https://", "")],
)  # fmt: skip
def test_hosts_of_urls(url: str, host: str) -> None:
    assert url_host(url) == host


@given(st.text(max_size=40))
def test_any_url_has_an_answer(text: str) -> None:
    url_host(text)
    url_host("https://" + text)
    same_public_16(text, text)
