from __future__ import annotations

import base64
import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.address import decode_address, encode_address, operator_id

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
# The address of 32 zero bytes is known wherever this codec is.
ZERO = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAY5HFKQ"


def by_hashlib(key: bytes) -> str:
    """The codec with another library's hash than the code's."""
    checksum = hashlib.new("sha512_256", key).digest()[-4:]
    return base64.b32encode(key + checksum).decode().strip("=")


def test_the_known_address() -> None:
    assert encode_address(bytes(32)) == ZERO
    assert decode_address(ZERO) == bytes(32)


@given(st.binary(min_size=32, max_size=32))
def test_addresses_go_both_ways(key: bytes) -> None:
    address = encode_address(key)
    if "sha512_256" in hashlib.algorithms_available:
        assert address == by_hashlib(key)
    assert len(address) == 58
    assert decode_address(address) == key


@pytest.mark.parametrize(
    "text",
    ["", ZERO[:-1], ZERO + "A", ZERO.lower(), ZERO + "=" * 6, " " + ZERO[1:], ZERO + "\n", "0" + ZERO[1:],
     ZERO[:-1] + "R", "B" + ZERO[1:], "Å" + ZERO[1:], ZERO[:57] + "="],
)  # fmt: skip
def test_other_spellings_are_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        decode_address(text)


@pytest.mark.parametrize("size", [0, 31, 33, 36])
def test_other_lengths_are_no_key(size: int) -> None:
    for make in (encode_address, operator_id):
        with pytest.raises(ValueError, match="32 bytes"):
            make(bytes(size))


def test_ten_thousand_mutations_never_pass_for_another_key() -> None:
    rng = random.Random(1)
    for _ in range(10_000):
        address = list(encode_address(rng.randbytes(32)))
        place = rng.randrange(58)
        address[place] = rng.choice((ALPHABET + "018=a \x00é").replace(address[place], ""))
        with pytest.raises(ValueError, match="address"):
            decode_address("".join(address))


def test_the_operator_follows_from_the_owner_key() -> None:
    # SHA-256 of 32 zero bytes begins 66687aadf862bd77…: 53 bits of it, by hand.
    assert operator_id(bytes(32)) == 0x66687AADF862BD >> 3
    assert 0 <= operator_id(b"\xff" * 32) < 2**53
