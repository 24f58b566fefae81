"""Sealed headers: base64 inside and outside, and absent where they do not open."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.box import Exchange
from relaydesk.core.relay.sealed.headers import (
    open_receipt,
    open_settle_group,
    seal_receipt,
    seal_settle_group,
)
from tests.support.mutants import mutants

KEY = bytes(range(32))
NONCE = bytes(range(12))
AT = Exchange(KEY, "TX", "T1")


def made(inside: bytes, name: bytes, tx: bytes = b"TX") -> str:
    sealed = ChaCha20Poly1305(KEY).encrypt(NONCE, inside, b"zs\0hdr\0" + tx + b"\0T1\0" + name)
    return base64.b64encode(NONCE + sealed).decode()


@given(st.binary(max_size=200))
def test_they_are_what_the_wire_says(data: bytes) -> None:
    inside = base64.b64encode(data)
    assert seal_receipt(AT, data, NONCE) == made(inside, b"receipt")
    assert seal_settle_group(AT, data, NONCE) == made(inside, b"settle-group")
    assert open_receipt(AT, made(inside, b"receipt")) == data
    assert open_settle_group(AT, made(inside, b"settle-group")) == data


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "é",
        "AAAA",
        made(b"YQ==", b"settle-group"),
        made(b"YQ==", b"receipt", b"TY"),
        made(b'{"ticket_id":"x"}', b"receipt"),
        made(b"\xff", b"receipt"),
        made(b"YQ==", b"receipt") + "\n",
        made(b"YWFh" * 4000, b"receipt"),
    ],
)
def test_what_does_not_open_is_absent(value: str) -> None:
    assert open_receipt(AT, value) is None


def test_one_header_is_not_the_other() -> None:
    assert open_settle_group(AT, seal_receipt(AT, b"a", NONCE)) is None
    assert open_receipt(AT, seal_settle_group(AT, b"a", NONCE)) is None


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    # Of a length that needs no padding, whose last bits would say nothing.
    good = seal_receipt(AT, b"taken", NONCE)
    assert not good.endswith("=")
    for data in mutants(good.encode(), count):
        value = data.decode("latin-1")
        assert open_receipt(AT, value) == (b"taken" if value == good else None)
