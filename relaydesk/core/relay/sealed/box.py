"""The cipher of sealed answers: ChaCha20-Poly1305 with a nonce of 12 random bytes in front (wire §4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from nacl import bindings
from nacl.exceptions import CryptoError

from relaydesk.core.relay.sealed.envelope import SealedError

KEY_SIZE: Final = 32
NONCE_SIZE: Final = 12
TAG_SIZE: Final = 16

_encrypt = bindings.crypto_aead_chacha20poly1305_ietf_encrypt
_decrypt = bindings.crypto_aead_chacha20poly1305_ietf_decrypt


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer: the response key (32 bytes) and the two ids the answer is bound to."""

    key: bytes = field(repr=False)
    tx_id: str
    ticket_id: str

    def __post_init__(self) -> None:
        if len(self.key) != KEY_SIZE:
            raise ValueError("a response key has 32 bytes")


def seal(key: bytes, aad: bytes, nonce: bytes, plaintext: bytes) -> bytes:
    """Ciphertext with its tag. A nonce must never be used twice with one key."""
    return bytes(_encrypt(plaintext, aad, nonce, key))


def unseal(key: bytes, aad: bytes, nonce: bytes, ciphertext: bytes) -> bytes:
    """The plaintext. Raises `SealedError` where anything was altered or bound to something else."""
    if len(nonce) != NONCE_SIZE or len(ciphertext) < TAG_SIZE:
        raise SealedError("too short to be sealed")
    try:
        return bytes(_decrypt(ciphertext, aad, nonce, key))
    except CryptoError:
        raise SealedError("does not open: altered, or sealed for another place") from None


def seal_joined(key: bytes, aad: bytes, nonce: bytes, plaintext: bytes) -> bytes:
    """``nonce`` and ciphertext in one piece, as headers and frames carry them."""
    return nonce + bytes(_encrypt(plaintext, aad, nonce, key))


def unseal_joined(key: bytes, aad: bytes, data: bytes) -> bytes:
    """The plaintext of `seal_joined`. Raises `SealedError`."""
    return unseal(key, aad, data[:NONCE_SIZE], data[NONCE_SIZE:])
