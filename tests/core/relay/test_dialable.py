from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.dialable import public_address

INSIDE = [
    "127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255",
    "192.168.0.1", "169.254.169.254", "0.0.0.0", "0.1.2.3", "100.64.0.0", "100.127.255.255",
    "100.100.100.200", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "192.0.0.192", "198.18.0.1",
    "198.19.255.255", "168.63.129.16",
]  # fmt: skip
OUTSIDE = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.113.5", "223.255.255.255",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_are_refused_in_every_form(address: str) -> None:
    v4 = ipaddress.IPv4Address(address)
    assert not public_address(address)
    assert not public_address(v4)
    assert not public_address(f"::ffff:{address}")
    assert not public_address(f"::{address}")
    assert not public_address(f"64:ff9b::{address}")
    assert not public_address(ipaddress.IPv6Address((0x2002 << 112) | (int(v4) << 80) | 1))


@pytest.mark.parametrize("address", OUTSIDE)
def test_addresses_of_the_world_may_be_dialed(address: str) -> None:
    assert public_address(address)
    assert public_address(f"::ffff:{address}")
    assert public_address(f"64:ff9b::{address}")


@pytest.mark.parametrize(
    "address",
    ["::", "::1", "fc00::1", "fdff::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1", "ff02::1",
     "ff0e::1", "fbff::1", "4000::1", "100::1", "2001:0:1:2::3", "64:ff9b:1::1", "fe80::1%eth0",
     "2606:4700::1111%eth0"],
)  # fmt: skip
def test_ipv6_inside_is_refused(address: str) -> None:
    assert not public_address(address)


@pytest.mark.parametrize("address", ["2606:4700::1111", "2001:4860:4860::8888", "2a00::1", "3fff::1"])
def test_ipv6_of_the_world_may_be_dialed(address: str) -> None:
    assert public_address(address)


@pytest.mark.parametrize(
    "text", ["", "localhost", "example.org", "1.1.1", "0x1.1.1.1", "01.1.1.1", "16843009", "1.1.1.1:80",
             "[2606::1]", " 1.1.1.1", "1.1.1.1\n", "1.1.1.1/32", "１.1.1.1"]
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    assert not public_address(text)


@given(st.text(max_size=40))
def test_any_text_has_an_answer(text: str) -> None:
    if public_address(text):
        assert ipaddress.ip_address(text)


@given(st.ip_addresses())
def test_nothing_the_library_knows_as_inner_is_dialed(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    inner = (
        address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
        or address.is_reserved
    )  # fmt: skip
    # The library calls reserved what carries an IPv4 address, which is then what counts.
    if inner and not str(address).startswith(("64:ff9b::", "::ffff:")):
        assert not public_address(address)
