"""Sealing to age recipients, by pyrage."""

from __future__ import annotations

from typing import Final

import pyrage
from nacl.bindings import crypto_scalarmult

# A header for one recipient is some hundred bytes, whatever a writer pads it with. pyrage takes time by the
# square of a header's stanzas and lets no other thread run meanwhile: anybody's few kilobytes of them would
# stop the whole node.
HEADER_LIMIT: Final = 1024
STANZAS: Final = 4
_END: Final = b"\n--- "
_STANZA: Final = b"\n-> "

# A recipient is 32 bytes in Bech32: "age1", 52 characters of five bits, a checksum of six.
_BECH32: Final = {character: value for value, character in enumerate("qpzry9x8gf2tvdw0s3jn54khce6mua7l")}
# With a point of small order every scalar shares zero: libsodium refuses those, where pyrage panics.
_ANY_SCALAR: Final = bytes(32)


class PyrageIdentity:
    """`AgeIdentity`: one X25519 key. Python cannot wipe it; it goes with its last reference."""

    __slots__ = ("_identity", "recipient")

    def __init__(self) -> None:
        self._identity = pyrage.x25519.Identity.generate()
        self.recipient = str(self._identity.to_public())

    def __repr__(self) -> str:
        return f"PyrageIdentity({self.recipient})"

    def open(self, ciphertext: bytes) -> bytes:
        """The plaintext. Raises `ValueError`, also for a header longer than one recipient needs."""
        end = ciphertext.find(_END, 0, HEADER_LIMIT)
        if end < 0 or ciphertext.count(_STANZA, 0, end) > STANZAS:
            raise ValueError("not sealed to one identity: its age header is none, or too long")
        try:
            plaintext: bytes = pyrage.decrypt(ciphertext, [self._identity])
        except pyrage.DecryptError as error:
            raise ValueError("not sealed to this identity, or changed on its way") from error
        return plaintext


class PyrageAge:
    """`Age` by pyrage."""

    def new_identity(self) -> PyrageIdentity:
        return PyrageIdentity()

    def seal(self, plaintext: bytes, recipient: str) -> bytes:
        try:
            to = pyrage.x25519.Recipient.from_str(recipient)
            crypto_scalarmult(_ANY_SCALAR, _point(recipient))
        except (pyrage.RecipientError, RuntimeError) as error:
            raise ValueError("no age recipient") from error
        sealed: bytes = pyrage.encrypt(plaintext, [to])
        return sealed


def _point(recipient: str) -> bytes:
    """The point of a recipient that was read before."""
    bits = 0
    for character in recipient[4:-6].lower():
        bits = bits << 5 | _BECH32[character]
    return (bits >> 4).to_bytes(32, "big")
