"""A node's advertisement of its short-lived age key, signed by its long-lived one (wire §4.2).

The ids it binds come from the directory, never from the document it stands in: an advert of a sibling node
must not hold for another. All times are whole seconds since 1970.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from relaydesk.core.relay.records.canonical import I64, U64, RecordError, S, b64, sign, verify_text
from relaydesk.core.relay.ref import NodeRef

DOMAIN: Final = b"zs-ephemeral-v1\0"

# How far a peer's clock may be off, either way.
SKEW_S: Final = 60
# A key advertised for longer than this is refused, whoever signed it.
MAX_LIFE_S: Final = 40 * 60
# A relay that hands out adverts older than this serves them from a cache it should not have.
STALE_S: Final = 21 * 60
# A node's own key: used this long, advertised that long, and kept for opening after it was replaced.
ROTATE_S: Final = 20 * 60
LIFE_S: Final = 25 * 60
KEEP_S: Final = 10 * 60

# The shape of an age recipient (bech32); its checksum is found wrong where somebody seals to it.
_RECIPIENT: Final = re.compile(r"age1[02-9ac-hj-np-z]{58}")


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """``age_pubkey`` (``age1…``) holds from ``issued_at`` to ``expiry``; ``sig`` is base64."""

    age_pubkey: str
    issued_at: int
    expiry: int
    sig: str


class Holds(Enum):
    """What became of checking an advert. All but the first two refuse the node: there is no other key."""

    FRESH = "fresh"
    STALE = "stale"
    BAD_SIGNATURE = "bad_signature"
    FROM_THE_FUTURE = "from_the_future"
    BAD_LIFE = "bad_life"
    EXPIRED = "expired"

    @property
    def usable(self) -> bool:
        """Whether the key may be sealed to. A stale one may: it is the relay's fault, not the node's."""
        return self in (Holds.FRESH, Holds.STALE)


def is_recipient(text: str) -> bool:
    """Whether ``text`` looks like an age recipient."""
    return _RECIPIENT.fullmatch(text) is not None


def ephemeral_bytes(ref: NodeRef, age_pubkey: str, issued_at: int, expiry: int) -> bytes:
    """What is signed. Raises `RecordError` where a number is out of range."""
    ids = U64(ref.operator) + U64(ref.node)
    return DOMAIN + ids + S(age_pubkey) + I64(expiry) + I64(issued_at)


def sign_ephemeral(seed: bytes, ref: NodeRef, age_pubkey: str, issued_at: int, expiry: int) -> Ephemeral:
    """An advert by the node signing key of ``seed``. Raises `RecordError` where a number is out of range."""
    signature = sign(seed, ephemeral_bytes(ref, age_pubkey, issued_at, expiry))
    return Ephemeral(age_pubkey, issued_at, expiry, b64(signature))


def check_ephemeral(
    advert: Ephemeral, ref: NodeRef, public: bytes, now: int, *, relayed: bool = True
) -> Holds:
    """Check an advert of the node ``ref`` against its signing key as the directory has it.

    The signature comes first: nothing unsigned may say why it is refused. Never raises.
    """
    try:
        signed = ephemeral_bytes(ref, advert.age_pubkey, advert.issued_at, advert.expiry)
    except RecordError:
        return Holds.BAD_SIGNATURE
    if not is_recipient(advert.age_pubkey) or not verify_text(public, signed, advert.sig):
        return Holds.BAD_SIGNATURE
    if advert.issued_at > now + SKEW_S:
        return Holds.FROM_THE_FUTURE
    if not 0 <= advert.expiry - advert.issued_at <= MAX_LIFE_S:
        return Holds.BAD_LIFE
    if now > advert.expiry + SKEW_S:
        return Holds.EXPIRED
    return Holds.STALE if relayed and now - advert.issued_at > STALE_S else Holds.FRESH
