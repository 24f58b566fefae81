"""The cipher, against another library."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.box import Exchange, seal, seal_joined, unseal, unseal_joined
from relaydesk.core.relay.sealed.envelope import SealedError

KEY = bytes(range(32))
NONCE = bytes(range(12))


@given(st.binary(max_size=300), st.binary(max_size=60))
def test_it_is_the_cipher_of_rfc_8439(plaintext: bytes, aad: bytes) -> None:
    sealed = ChaCha20Poly1305(KEY).encrypt(NONCE, plaintext, aad)
    assert seal(KEY, aad, NONCE, plaintext) == sealed
    assert seal_joined(KEY, aad, NONCE, plaintext) == NONCE + sealed
    assert unseal(KEY, aad, NONCE, sealed) == plaintext
    assert unseal_joined(KEY, aad, NONCE + sealed) == plaintext


@given(st.binary(max_size=60))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(SealedError):
        unseal_joined(KEY, b"", data)
    with pytest.raises(SealedError):
        unseal(KEY, b"", data, data)


@given(st.integers(0, (12 + 3 + 16) * 8 - 1))
def test_one_bit_is_enough(bit: int) -> None:
    data = bytearray(seal_joined(KEY, b"a", NONCE, b"abc"))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealedError):
        unseal_joined(KEY, b"a", bytes(data))


def test_another_key_or_place_does_not_open_it() -> None:
    sealed = seal(KEY, b"a", NONCE, b"abc")
    for key, aad in ((KEY[::-1], b"a"), (KEY, b"b"), (KEY, b"")):
        with pytest.raises(SealedError):
            unseal(key, aad, NONCE, sealed)


def test_an_exchange_shows_no_key() -> None:
    assert repr(Exchange(b"k" * 32, "TX", "T")) == "Exchange(tx_id='TX', ticket_id='T')"
    with pytest.raises(ValueError, match="32"):
        Exchange(b"k" * 31, "TX", "T")
