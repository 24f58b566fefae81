"""The key of a sealed answer: made by the target at reserve, one a ticket (wire §4.1, §4.3).

It travels in the reserve's response and again in ``X-Zs-Response-Key``, sealed to the caller's reply key;
the signed ticket commits to its hash.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from relaydesk.core.ports import Age, AgeIdentity
from relaydesk.core.relay.records.canonical import RecordError, b64, unb64
from relaydesk.core.relay.sealed.box import KEY_SIZE
from relaydesk.core.relay.sealed.envelope import SealedError

RESPONSE_KEY_HEADER: Final = "X-Zs-Response-Key"
# A wrapped key has some 300 characters.
TEXT_LIMIT: Final = 4096


def wrap_key(age: Age, key: bytes, recipient: str) -> str:
    """``key`` sealed to ``recipient``, in base64. Raises `ValueError` where that is none."""
    return b64(age.seal(key, recipient))


def unwrap_key(identity: AgeIdentity, text: str) -> bytes:
    """The 32 bytes of a wrapped key. Raises `SealedError`."""
    if len(text) > TEXT_LIMIT:
        raise SealedError("the response key is too long")
    try:
        key = identity.open(unb64(text, "the response key"))
    except RecordError as error:
        raise SealedError(str(error)) from None
    except ValueError:
        raise SealedError("the response key was not sealed to this key") from None
    if len(key) != KEY_SIZE:
        raise SealedError("the response key has not 32 bytes")
    return key


def commit_key(key: bytes) -> str:
    """What the ticket says of the key: base64 of its SHA-256."""
    return b64(hashlib.sha256(key).digest())


def key_is_committed(key: bytes, commit: str) -> bool:
    """Whether ``key`` is the one a ticket commits to. Where not, nothing sealed with it may be read."""
    return hmac.compare_digest(commit_key(key).encode(), commit.encode("utf-8", "replace"))
