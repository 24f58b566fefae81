from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import LocalError
from relaydesk.core.tls.names import (
    MAX_ADDRESSES,
    Constraints,
    covers,
    home_constraints,
    leaf_names,
    outside_error,
    parse_address,
    parse_name,
    parse_names,
    permitted,
    short_name,
)

ip = ipaddress.ip_address
HOME = home_constraints("hub")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hub.Internal.", "hub.internal"),
        ("my_nas", "my_nas"),
        ("bücher.local", "xn--bcher-kva.local"),
        ("192.168.1.5", ip("192.168.1.5")),
        ("[fd00::1]", ip("fd00::1")),
        ("fe80::1%eth0", ip("fe80::1")),
        ("::ffff:10.0.0.1", ip("10.0.0.1")),
    ],
)
def test_names_take_one_form(text: str, name: object) -> None:
    assert parse_name(text) == name


@pytest.mark.parametrize(
    "text",
    ["", ".", "a..b", "-a", "a-", "*.lan", "https://hub", "hub:8383", "a b", "10.0.0", "10.0.0.256", "0x7f.1",
     "a.0x1F", "a/b", "x" * 64, ".".join(["x" * 60] * 5), "ü" * 300, "a\x00b"],
)  # fmt: skip
def test_what_a_verifier_would_misread_is_refused(text: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse_name(text)
    assert caught.value.fault.code == "bad_setting"
    assert "RELAY_TLS_NAMES" in caught.value.fault.message


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300) | st.from_regex(r"[a-z0-9.:%\[\]_-]{1,40}", fullmatch=True))
def test_any_text_is_a_stable_name_or_a_sentence(text: str) -> None:
    try:
        name = parse_name(text)
    except LocalError:
        return
    assert parse_name(str(name)) == name
    if isinstance(name, str):
        assert name.isascii() and name == name.lower() and len(name) <= 253
        assert parse_address(name) is None


def test_a_setting_lists_names_once() -> None:
    assert parse_names(" hub.internal, HUB.internal;10.0.0.1 ") == ("hub.internal", ip("10.0.0.1"))
    assert parse_names("") == ()


@pytest.mark.parametrize(
    "name",
    ["localhost", "hub", "a.hub", "hub.local", "x.y.lan", "hub.home.arpa", "hub.internal", "hub.tail1.ts.net",
     "10.1.2.3", "172.31.0.1",
     "192.168.9.9", "100.127.0.1", "169.254.1.1", "127.0.0.2", "::1", "fe80::1", "fdff::1"],
)  # fmt: skip
def test_home_is_permitted(name: str) -> None:
    assert permitted(parse_name(name), HOME)


@pytest.mark.parametrize(
    "name",
    ["hub2", "xhub", "hub.example.com", "xlocal", "arpa", "net", "x.net", "mylan", "8.8.8.8", "172.32.0.1",
     "100.128.0.1", "128.0.0.1", "::2", "2001:db8::1", "::ffff:8.8.8.8"],
)  # fmt: skip
def test_the_rest_of_the_world_is_not(name: str) -> None:
    assert not permitted(parse_name(name), HOME)


def test_names_of_the_first_start_widen_the_constraints_by_themselves_only() -> None:
    wide = home_constraints("hub", parse_names("hub.example.com 203.0.113.7 10.0.0.9 pi.lan"))
    assert permitted("hub.example.com", wide) and not permitted("example.com", wide)
    assert permitted(ip("203.0.113.7"), wide) and not permitted(ip("203.0.113.8"), wide)
    assert len(wide.domains) == len(HOME.domains) + 1 and len(wide.networks) == len(HOME.networks) + 1


def test_an_unusable_host_name_gives_no_constraint() -> None:
    assert short_name("bad host.lan") is None
    assert short_name("7.example") is None
    assert home_constraints("") == home_constraints("bad host")


def test_a_leaf_has_every_own_name_and_nothing_outside() -> None:
    own = [ip("192.168.1.5"), ip("fe80::5"), ip("2001:db8::5"), ip("192.0.2.2"), ip("127.0.0.1")]
    got = leaf_names("hub.example.com", own, parse_names("nas.lan vpn.example.org"), HOME)
    for name in ("localhost", "hub", "hub.local", "hub.lan", "hub.internal", "nas.lan"):
        assert name in got.names
    assert {ip("127.0.0.1"), ip("::1"), ip("192.168.1.5"), ip("fe80::5")} <= set(got.names)
    assert set(got.refused) == {"hub.example.com", "vpn.example.org", "192.0.2.2", "2001:db8::5"}
    assert got.refused_extra == ("vpn.example.org",)


def test_many_bridges_do_not_crowd_out_the_lan_address() -> None:
    links = [ip("fe80::1:0") + n for n in range(300)]
    got = leaf_names("hub", [*links, ip("192.168.1.5"), ip("fd00::5")], (), HOME)
    assert {ip("192.168.1.5"), ip("fd00::5")} <= set(got.names)
    assert len(got.names) <= MAX_ADDRESSES + 8


addresses = st.ip_addresses()
hosts = st.from_regex(r"[A-Za-z0-9._-]{0,20}", fullmatch=True)


@settings(max_examples=100, deadline=None)
@given(hosts, st.lists(addresses, max_size=8), st.lists(hosts, max_size=4), hosts)
def test_a_leaf_is_always_inside_and_independent_of_order(
    host: str, own: list[ipaddress.IPv4Address | ipaddress.IPv6Address], asked: list[str], made_as: str
) -> None:
    extra = []
    for text in asked:
        try:
            extra.append(parse_name(text))
        except LocalError:
            pass
    constraints = home_constraints(made_as)
    got = leaf_names(host, own, extra, constraints)
    assert all(permitted(name, constraints) for name in got.names)
    assert len(set(got.names)) == len(got.names)
    assert set(leaf_names(host, own[::-1], extra[::-1], constraints).names) == set(got.names)
    for name in extra:
        assert (name in got.names) != (str(name) in got.refused_extra)


def test_a_star_stands_for_one_label() -> None:
    names = ["*.example.com", "hub"]
    assert covers(names, "a.example.com") and covers(names, "hub")
    assert not covers(names, "a.b.example.com") and not covers(names, "example.com")
    assert not covers(["*.com"], "example.com") and not covers(["*"], "hub")
    assert not covers(names, ip("10.0.0.1"))


def test_the_refusal_names_both_ways_out() -> None:
    sentence = outside_error(["vpn.example.org"]).fault.sentence
    for part in (
        "vpn.example.org",
        "RELAY_TLS_CERT",
        "RELAY_TLS_KEY",
        "RELAY_TLS_DOMAIN",
        "relaydesk tls renew-ca",
    ):
        assert part in sentence


def test_empty_constraints_permit_nothing() -> None:
    assert not permitted("localhost", Constraints((), ())) and not permitted(ip("::1"), Constraints((), ()))
