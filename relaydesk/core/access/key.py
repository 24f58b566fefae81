"""A named key: what it is called, what it may do, and until when."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from relaydesk.core.access.compare import digest
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.errors import LocalError
from relaydesk.core.ports import Rng

DEFAULT_KEY: Final = "default"
# So that a key is recognised where it turns up, by people and by scanners for leaked secrets.
PREFIX: Final = "rk-"

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@+-]{0,62}[A-Za-z0-9])?")
_KEY_BYTES: Final = 32


class KeySpec(msgspec.Struct, frozen=True, kw_only=True):
    """One named key as stored and as fronts edit it; its secret is not in it.

    ``id`` names it for good: usage is kept under it. ``models`` are the model names it may use, empty for
    all. ``expires_ms`` is the wall-clock time from which it opens nothing, 0 for never. ``in_path`` keys
    stand in a URL (``/k/<key>/…``) and open nothing else. ``network`` keys may ask models of the relay
    network (``net/<id>``), within their credit.
    """

    name: str
    id: str
    created_ms: int
    limits: KeyLimits = KeyLimits()
    models: tuple[str, ...] = ()
    expires_ms: int = 0
    in_path: bool = False
    network: bool = False

    def expired(self, wall_ms: int) -> bool:
        """Whether it opens nothing any more."""
        return 0 < self.expires_ms <= wall_ms

    def allows(self, model: str) -> bool:
        """Whether the key's list of models has this one, if it has a list."""
        return not self.models or model in self.models


def parse_key_name(text: str) -> str:
    """A key's name: 1 to 64 of ``A-Z a-z 0-9 . _ @ + -``. Raises `LocalError` ``invalid_request``."""
    if not _NAME.fullmatch(text):
        raise LocalError(
            "invalid_request",
            "a key's name has 1 to 64 characters out of letters, digits and . _ @ + -, and starts and ends "
            "with a letter or digit",
            "choose another name",
            param="name",
        )
    if text.lower() == DEFAULT_KEY:
        raise LocalError(
            "invalid_request", f"{DEFAULT_KEY} is the default key's name", "choose another name", param="name"
        )
    return text


def make_secret(rng: Rng) -> str:
    """A new key's secret: 32 random bytes in hex behind `PREFIX`."""
    return PREFIX + rng.token_bytes(_KEY_BYTES).hex()


def key_id(secret: str) -> str:
    """A key's id: the first 16 hex digits of its SHA-256. It cannot be used as a key."""
    return digest(secret).hex()[:16]
