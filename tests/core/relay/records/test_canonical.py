"""Signed bytes, signatures and strict base64, against another library and by hand."""

from __future__ import annotations

import base64
import hashlib
import json

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.records.canonical import (
    I64,
    U8,
    U64,
    B,
    RecordError,
    S,
    b64,
    decode_record,
    digest,
    public_of,
    sign,
    unb64,
    verify,
    verify_text,
)

SEED = bytes(range(32))
OTHER = Ed25519PrivateKey.from_private_bytes(SEED)
PUBLIC = OTHER.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def test_the_helpers_write_what_the_wire_says() -> None:
    assert S("a€") == b"\x00\x00\x00\x04a\xe2\x82\xac"
    assert S("") == b"\x00\x00\x00\x00"
    assert U64(258) == b"\x00\x00\x00\x00\x00\x00\x01\x02"
    assert U64(2**64 - 1) == b"\xff" * 8
    assert I64(-2) == b"\xff" * 7 + b"\xfe"
    assert I64(-(2**63)) == b"\x80" + b"\x00" * 7
    assert (B(True), B(False)) == (b"\x01", b"\x00")
    assert (U8(0), U8(255)) == (b"\x00", b"\xff")
    assert digest(b"x") == hashlib.sha256(b"x").digest()


@pytest.mark.parametrize(
    ("helper", "value"),
    [(U64, -1), (U64, 2**64), (I64, 2**63), (I64, -(2**63) - 1), (U8, -1), (U8, 256), (S, "\ud800")],
)
def test_what_does_not_fit_is_refused(helper: object, value: object) -> None:
    with pytest.raises(RecordError):
        helper(value)  # type: ignore[operator]


@given(st.binary(max_size=80))
def test_signatures_are_the_ones_another_library_makes(data: bytes) -> None:
    hashed = hashlib.sha256(data).digest()
    assert sign(SEED, data) == OTHER.sign(hashed)
    assert public_of(SEED) == PUBLIC
    assert verify(PUBLIC, data, OTHER.sign(hashed))
    # Over the bytes themselves, as a library would by itself, it does not hold.
    assert not verify(PUBLIC, data, OTHER.sign(data))


@given(st.binary(max_size=70), st.binary(max_size=40), st.binary(max_size=70))
def test_verify_never_raises(signature: bytes, public: bytes, data: bytes) -> None:
    assert not verify(public, data, signature)
    assert not verify(PUBLIC, data, signature)
    assert not verify(public.ljust(32, b"\0")[:32], data, signature.ljust(64, b"\0")[:64])


@given(st.integers(0, 511))
def test_one_bit_breaks_a_signature(bit: int) -> None:
    good = bytearray(OTHER.sign(hashlib.sha256(b"x").digest()))
    for public in (b"", PUBLIC[:-1], PUBLIC + b"\0"):
        assert not verify(public, b"x", bytes(good))
    assert verify_text(PUBLIC, b"x", base64.b64encode(good).decode())
    good[bit // 8] ^= 1 << bit % 8
    assert not verify_text(PUBLIC, b"x", base64.b64encode(good).decode())


@pytest.mark.parametrize("text", ["", "x", "é", "AAAA", "A" * 86, "A" * 88 + "\n", "\ud800"])
def test_a_signature_that_is_no_base64_does_not_hold(text: str) -> None:
    assert not verify_text(PUBLIC, b"x", text)


@given(st.binary(max_size=100))
def test_base64_is_the_standard_one(data: bytes) -> None:
    assert b64(data) == base64.b64encode(data).decode()
    assert unb64(b64(data), "x", len(data)) == data


@pytest.mark.parametrize(
    "text", ["A", "AA", "AAA", "AA=", "AA==A", "A A=", "AA==\n", "AA-_", "=", "é", "AAAA===="]
)
def test_base64_takes_nothing_else(text: str) -> None:
    with pytest.raises(RecordError, match="the thing"):
        unb64(text, "the thing")
    with pytest.raises(RecordError, match="16 bytes"):
        unb64("AAAA", "the thing", 16)


class _Numbers(msgspec.Struct):
    n: int = 0
    f: bool = False
    t: str = ""


@pytest.mark.parametrize(
    "data",
    [
        b'{"n":true}', b'{"n":1.0}', b'{"n":"1"}', b'{"n":1e3}', b'{"f":1}', b'{"t":1}', b'{"n":NaN}',
        b'{"n":null}',
        b"", b"[]", b"null", b'{"n":1', b'{"t":"\xff"}', b'{"t":"\\ud800"}', b'{"x":' + b"[" * 9000,
        b'{"n":%s}' % (b"9" * 6000), b'{"n":1}{}', b'{"n":01}',
    ],
)  # fmt: skip
def test_json_is_read_by_its_types(data: bytes) -> None:
    with pytest.raises(RecordError, match="the thing"):
        decode_record(msgspec.json.Decoder(_Numbers), data, "the thing")


def test_unknown_fields_and_white_space_mean_nothing() -> None:
    data = json.dumps({"x": [1.5, None], "n": 2**64 - 1, "f": True}, indent=2).encode()
    assert decode_record(msgspec.json.Decoder(_Numbers), data, "x") == _Numbers(2**64 - 1, True)


def test_an_error_repeats_nothing_of_its_peer() -> None:
    with pytest.raises(RecordError) as caught:
        decode_record(msgspec.json.Decoder(_Numbers), b'{"n":"secret"}', "x")
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None
