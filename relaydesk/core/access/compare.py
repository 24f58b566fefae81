"""Secrets compared so that the time taken tells nothing about them."""

from __future__ import annotations

import hashlib
import hmac


def digest(secret: str) -> bytes:
    """SHA-256 of a secret as it came. Any text has one, lone surrogates of an undecodable header included."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def matches(presented: str, expected: bytes) -> bool:
    """Whether ``presented`` is the secret whose `digest` is ``expected``.

    Comparing digests hides the length of the secret as well; both sides always have 32 bytes.
    """
    return hmac.compare_digest(digest(presented), expected)


def same_secret(one: str, other: str) -> bool:
    """Whether two secrets are equal, in time that depends on their lengths only."""
    return matches(one, digest(other))
