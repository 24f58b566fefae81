"""A long-lived Ed25519 key of an owner, a node or a directory, and its one line of text for a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from nacl import bindings

from relaydesk.core.errors import LocalError
from relaydesk.core.ports import Rng
from relaydesk.core.relay.address import encode_address
from relaydesk.core.relay.records.canonical import RecordError, b64, public_of, unb64

Kind = Literal["owner", "node", "directory"]
SEED_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SigningKey:
    """``seed`` has 32 bytes and is shown nowhere. ``address`` is the public key's (wire §4.1)."""

    kind: Kind
    seed: bytes = field(repr=False)
    address: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", encode_address(public_of(self.seed)))

    def sign(self, digest: bytes) -> bytes:
        """Ed25519 over a digest of 32 bytes as it stands: 64 bytes."""
        _, secret = bindings.crypto_sign_seed_keypair(self.seed)
        return bytes(bindings.crypto_sign(digest, secret)[:64])

    def text(self) -> str:
        """The key as one line, secret and all, without a line end."""
        return f"relaydesk-{self.kind}-key-v1:{b64(self.seed)}"


def new_key(kind: Kind, rng: Rng) -> SigningKey:
    """A fresh key."""
    return SigningKey(kind, rng.token_bytes(SEED_BYTES))


def parse_key(text: str, kind: Kind) -> SigningKey:
    """A key out of its line. Raises `LocalError` ``invalid_request``; nothing of the text is repeated."""
    head, _, seed = text.strip().partition(":")
    try:
        if head != f"relaydesk-{kind}-key-v1":
            raise RecordError("another kind of text")
        return SigningKey(kind, unb64(seed, "the key", SEED_BYTES))
    except RecordError:
        raise LocalError(
            "invalid_request",
            f"this is no {kind} key of relaydesk",
            f"it is one line that begins with relaydesk-{kind}-key-v1:",
        ) from None
