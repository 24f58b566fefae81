"""The sealed body, against another library."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.body import open_body, seal_body
from relaydesk.core.relay.sealed.box import Exchange
from relaydesk.core.relay.sealed.envelope import SealedError
from tests.support.mutants import survives

KEY = bytes(range(32))
NONCE = bytes(range(12))
AT = Exchange(KEY, "TX", "T1")
LIMIT = 4096


def made(plaintext: bytes, nonce: bytes = NONCE, aad: bytes = b"zs\0body\0TX\0T1") -> bytes:
    sealed = ChaCha20Poly1305(KEY).encrypt(nonce, plaintext, aad)
    said = {"nonce": base64.b64encode(nonce).decode(), "ciphertext": base64.b64encode(sealed).decode()}
    return json.dumps(said).encode()


@given(st.binary(max_size=200))
def test_it_is_what_the_wire_says(plaintext: bytes) -> None:
    assert json.loads(seal_body(AT, plaintext, NONCE)) == json.loads(made(plaintext))
    assert open_body(AT, made(plaintext), LIMIT) == plaintext


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":[]}',
        b"",
        b"[]",
        b'{"nonce":"","ciphertext":""}',
        b'{"nonce":"AAAA","ciphertext":"AAAA"}',
        b'{"nonce":null,"ciphertext":"AAAA"}',
        made(b"x", aad=b"zs\0body\0TX\0"),
        made(b"x", aad=b"zs\0body\0TY\0T1"),
        made(b"x", aad=b"zs\0frame\0TX\0T1\0" + bytes(8)),
        made(b"x").replace(b"AAEC", b"AAED"),
        made(b"x" * 4096),
    ],
)
def test_nothing_else_opens(body: bytes) -> None:
    with pytest.raises(SealedError):
        open_body(AT, body, LIMIT)


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    survives(lambda body: open_body(AT, body, LIMIT), SealedError, made(b"answer"), count)
