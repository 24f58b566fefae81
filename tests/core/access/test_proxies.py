from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.access.proxies import Client, client_of, parse_network

TRUSTED = [ipaddress.ip_network(text) for text in ("127.0.0.1/32", "10.0.0.0/8", "fd00::/8")]


def seen(peer: str, *headers: tuple[str, str], scheme: str = "http") -> Client:
    return client_of(peer, scheme, headers, TRUSTED)


def xff(*values: str) -> list[tuple[str, str]]:
    return [("X-Forwarded-For", value) for value in values]


def test_a_stranger_is_who_it_is() -> None:
    headers = [*xff("1.2.3.4"), ("Forwarded", "for=1.2.3.4;proto=https"), ("X-Forwarded-Proto", "https")]
    assert seen("203.0.113.9", *headers) == Client("203.0.113.9", "http")
    assert client_of("127.0.0.1", "https", headers, ()) == Client("127.0.0.1", "https")


@pytest.mark.parametrize(
    ("values", "client"),
    [
        (["203.0.113.9"], "203.0.113.9"),
        (["203.0.113.9:51234"], "203.0.113.9"),
        (["[2001:db8::7]:443"], "2001:db8::7"),
        (["2001:db8::7"], "2001:db8::7"),
        ([" 203.0.113.9 , 10.1.1.1"], "203.0.113.9"),
        # What stands before the first stranger, the stranger wrote.
        (["1.1.1.1, 203.0.113.9, 10.1.1.1"], "203.0.113.9"),
        (["1.1.1.1", "203.0.113.9", "10.1.1.1, 10.2.2.2"], "203.0.113.9"),
        (["10.3.3.3, 10.1.1.1"], "10.3.3.3"),
        (["1.1.1.1, unknown, 10.1.1.1"], "10.1.1.1"),
        (["1.1.1.1, _hidden"], ""),
        (["unknown"], ""),
        ([""], ""),
        (["<script>"], ""),
        (["1.1.1.1,"], ""),
    ],
)
def test_a_proxys_chain_is_read_backwards(values: list[str], client: str) -> None:
    found = seen("127.0.0.1", *xff(*values))
    assert found == (Client(client, "http", "127.0.0.1") if client else Client("127.0.0.1", "http"))


@pytest.mark.parametrize(
    ("value", "client", "scheme"),
    [
        ("for=203.0.113.9", "203.0.113.9", "http"),
        ('For="203.0.113.9:80";proto=HTTPS;by=10.0.0.1', "203.0.113.9", "https"),
        ('for="[2001:db8::7]:4711";proto=https', "2001:db8::7", "https"),
        ("for=1.1.1.1;proto=http, for=203.0.113.9;proto=https, for=10.0.0.1", "203.0.113.9", "https"),
        ("for=_secret;proto=https", "", "http"),
        ("nonsense", "", "http"),
    ],
)
def test_forwarded(value: str, client: str, scheme: str) -> None:
    found = seen("10.9.9.9", ("Forwarded", value))
    assert found == (Client(client, scheme, "10.9.9.9") if client else Client("10.9.9.9", scheme))


def test_of_two_that_disagree_neither_counts() -> None:
    both = [*xff("203.0.113.9"), ("Forwarded", "for=198.51.100.1")]
    assert seen("127.0.0.1", *both) == Client("127.0.0.1", "http")
    same = [*xff("203.0.113.9"), ("Forwarded", 'for="203.0.113.9:1"')]
    assert seen("127.0.0.1", *same) == Client("203.0.113.9", "http", "127.0.0.1")


@pytest.mark.parametrize(
    ("value", "scheme"), [("https", "https"), ("HTTPS", "https"), ("http,https", "https"), ("ftp", "http")]
)
def test_the_clients_scheme(value: str, scheme: str) -> None:
    assert seen("10.0.0.1", ("x-forwarded-proto", value)).scheme == scheme
    assert seen("10.0.0.1", *xff("203.0.113.9"), ("x-forwarded-proto", value)).scheme == scheme


def test_an_address_of_version_4_in_version_6_is_one_of_version_4() -> None:
    assert seen("::ffff:127.0.0.1", *xff("::ffff:203.0.113.9")) == Client("203.0.113.9", "http", "127.0.0.1")
    assert seen("") == Client("", "http")


def test_networks() -> None:
    assert parse_network("127.0.0.1") == "127.0.0.1/32"
    assert parse_network("fd00::/8") == "fd00::/8"
    for text in ("10.0.0.1/8", "localhost", "", "1.2.3", "10.0.0.0/33"):
        with pytest.raises(ValueError, match=r".+"):
            parse_network(text)


ADDRESSES = st.one_of(st.ip_addresses().map(str), st.text(max_size=12))
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["X-Forwarded-For", "Forwarded", "X-Forwarded-Proto", "Accept"]),
        st.one_of(st.text(max_size=40), st.lists(ADDRESSES, max_size=6).map(", ".join),
                  ADDRESSES.map("for={};proto=https".format)),
    ),
    max_size=6,
)  # fmt: skip


@given(peer=ADDRESSES, headers=HEADERS)
def test_nobody_but_a_trusted_proxy_is_believed(peer: str, headers: list[tuple[str, str]]) -> None:
    found = client_of(peer, "http", headers, TRUSTED)
    assert found.scheme in ("http", "https")
    if found.proxy:
        assert any(ipaddress.ip_address(found.proxy) in network for network in TRUSTED)
        ipaddress.ip_address(found.address)
    else:
        assert client_of(peer, "http", (), TRUSTED).address == found.address


@given(client=st.ip_addresses(v=4), forged=st.lists(st.ip_addresses().map(str), max_size=4))
def test_what_a_client_writes_itself_moves_nothing(client: ipaddress.IPv4Address, forged: list[str]) -> None:
    """A proxy adds the address it saw at the end of whatever came."""
    if any(client in network for network in TRUSTED if network.version == 4):
        return
    assert seen("127.0.0.1", *xff(", ".join([*forged, str(client)]))).address == str(client)
