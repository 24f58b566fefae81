"""Sealing to age recipients, by pyrage."""

from __future__ import annotations

import pyrage


class PyrageIdentity:
    """`AgeIdentity`: one X25519 key. Python cannot wipe it; it goes with its last reference."""

    __slots__ = ("_identity", "recipient")

    def __init__(self) -> None:
        self._identity = pyrage.x25519.Identity.generate()
        self.recipient = str(self._identity.to_public())

    def __repr__(self) -> str:
        return f"PyrageIdentity({self.recipient})"

    def open(self, ciphertext: bytes) -> bytes:
        """The plaintext. Raises `ValueError`."""
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
        except pyrage.RecipientError as error:
            raise ValueError("no age recipient") from error
        sealed: bytes = pyrage.encrypt(plaintext, [to])
        return sealed
