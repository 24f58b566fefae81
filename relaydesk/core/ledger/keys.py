"""A signing key in hand: a `Signer` out of its seed."""

from __future__ import annotations

from relaydesk.core.relay.address import encode_address
from relaydesk.core.relay.records.canonical import public_of, sign


class KeySigner:
    """An Ed25519 key by its 32-byte seed. Its repr shows the address only."""

    __slots__ = ("_seed", "address")

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self.address = encode_address(public_of(seed))

    def __repr__(self) -> str:
        return f"KeySigner({self.address})"

    def sign(self, canonical: bytes) -> bytes:
        """64 bytes over the SHA-256 of ``canonical``."""
        return sign(self._seed, canonical)
