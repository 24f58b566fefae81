"""The envelope: one key, strict base64, bounded."""

from __future__ import annotations

import base64
import json

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.envelope import (
    SealedError,
    open_envelope,
    read_envelope,
    seal_envelope,
    write_envelope,
)
from relaydesk.engine.relay.age import PyrageAge
from tests.support.mutants import survives

LIMIT = 4096


@given(st.binary(min_size=1, max_size=200))
def test_it_carries_bytes(data: bytes) -> None:
    body = write_envelope(data)
    assert json.loads(body) == {"ciphertext": base64.b64encode(data).decode()}
    assert read_envelope(body, LIMIT) == data


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b'\n{ "ciphertext" : "QUJD" }\r\n', b"ABC"),
        (rb'{"\u0063iphertext":"QU\u004aD"}', b"ABC"),
        (rb'{"ciphertext":"\/\/\/\/"}', b"\xff\xff\xff"),
        (b'{"ciphertext":"QQ=="}', b"A"),
    ],
)
def test_json_may_be_written_as_one_likes(body: bytes, data: bytes) -> None:
    assert read_envelope(body, LIMIT) == data


@pytest.mark.parametrize(
    "body",
    [
        b'{"ciphertext":"QUJD","payer":"x"}',
        b'{"payer":1,"ciphertext":"QUJD"}',
        b'{"ciphertext":"QUJD","ciphertext":"QUJD"}',
        b'{"Ciphertext":"QUJD"}',
        b'{"ciphertext":["QUJD"]}',
        b'{"ciphertext":null,"a":""}',
        b'{"ciphertext":{"a":1}}',
        b'{"ciphertext":1}',
        b'{"ciphertext":""}',
        b'{"ciphertext":"QUJD\\n"}',
        b'{"ciphertext":"QUJ"}',
        b'{"ciphertext":"QUJD===="}',
        b'{"ciphertext":"QU-_"}',
        b'{"ciphertext":"\\ud800"}',
        b'{"ciphertext":"\xff"}',
        b'{"ciphertext":"QUJD"}{}',
        b'["ciphertext","QUJD"]',
        b'"ciphertext":"QUJD"',
        b"{}",
        b"",
        b'{"ciphertext":' + b"[" * 4000,
    ],
)
def test_nothing_else_is_an_envelope(body: bytes) -> None:
    with pytest.raises(SealedError):
        read_envelope(body, LIMIT)


def test_it_is_bounded() -> None:
    body = write_envelope(b"abc")
    assert read_envelope(body, len(body)) == b"abc"
    with pytest.raises(SealedError, match="large"):
        read_envelope(body, len(body) - 1)


def test_it_is_sealed_to_one_key() -> None:
    age = PyrageAge()
    identity, other = age.new_identity(), age.new_identity()
    body = seal_envelope(age, b"secret", identity.recipient)
    assert open_envelope(identity, body, LIMIT) == b"secret"
    for wrong in (
        body.replace(b'"}', b'AAAA"}').replace(b"=", b""),
        write_envelope(b"age-encryption.org/v1\n"),
    ):
        with pytest.raises(SealedError):
            open_envelope(identity, wrong, LIMIT)
    with pytest.raises(SealedError, match="this key") as caught:
        open_envelope(other, body, LIMIT)
    assert "secret" not in str(caught.value)
    theirs = pyrage.x25519.Identity.generate()
    sealed = json.loads(seal_envelope(age, b"x", str(theirs.to_public())))["ciphertext"]
    assert pyrage.decrypt(base64.b64decode(sealed), [theirs]) == b"x"
    with pytest.raises(ValueError, match="recipient"):
        seal_envelope(age, b"x", "age1x")


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    survives(lambda body: read_envelope(body, LIMIT), SealedError, write_envelope(bytes(range(200))), count)


@pytest.mark.parametrize("count", [1_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_mutated_age(count: int) -> None:
    age = PyrageAge()
    identity = age.new_identity()
    sample = age.seal(b"secret", identity.recipient)
    survives(lambda data: open_envelope(identity, write_envelope(data), 100_000), SealedError, sample, count)
