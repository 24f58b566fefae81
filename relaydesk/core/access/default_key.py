"""The default API key: given, kept, or made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from relaydesk.core.access.compare import digest
from relaydesk.core.errors import EnvError
from relaydesk.core.ports import Rng

SECRET_NAME: Final = "default_key"
_KEY_BYTES: Final = 32
_LEAST_STORED: Final = 16


@dataclass(frozen=True, slots=True)
class DefaultKey:
    """The key and where it is from. ``created`` asks the caller to store it and then print it once.

    ``given`` means that it came from a setting: it is never stored and cannot be rotated here.
    """

    secret: str = field(repr=False)
    created: bool
    given: bool

    @property
    def fingerprint(self) -> str:
        """What a view may show in place of the key."""
        return fingerprint(self.secret)


def fingerprint(secret: str) -> str:
    """The first 8 hex digits of the SHA-256: tells keys apart, and cannot be used as one."""
    return digest(secret).hex()[:8]


def make_key(rng: Rng) -> str:
    """32 random bytes in hex."""
    return rng.token_bytes(_KEY_BYTES).hex()


def default_key(given: str, stored: str | None, rng: Rng) -> DefaultKey:
    """A setting's key as it is, else the stored one, else a new one.

    Raises `EnvError` ``secret_failed`` where something is stored that cannot be a key: replacing it in
    silence would lock out every client that has the right one.
    """
    if given:
        return DefaultKey(given, created=False, given=True)
    if stored is None:
        return DefaultKey(make_key(rng), created=True, given=False)
    if len(stored) < _LEAST_STORED or not all("!" <= char <= "~" for char in stored):
        raise EnvError(
            "secret_failed",
            "the stored default API key is damaged",
            "restore its file from a backup, or remove the file so that the next start makes a new key",
        )
    return DefaultKey(stored, created=False, given=False)
