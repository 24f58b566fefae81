"""How certificates, records and directories are signed (design §6; ours, not the wire's).

``{"payload": base64, "key": address, "sig": base64}``. What is signed is SHA-256 over a tag of its own for
each kind of document and the payload's bytes as they stand: nothing is put into a canonical form, and a
signature over one kind is none over another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.records.canonical import verify

T = TypeVar("T")

CERTIFICATE: Final = b"relaydesk-certificate-v1\0"
RECORD: Final = b"relaydesk-record-v1\0"
DIRECTORY: Final = b"relaydesk-directory-v1\0"

Signer = Callable[[bytes], bytes]
"""Ed25519 over a digest of 32 bytes: 64 bytes."""

# Numbers in these documents stay exact in every JSON reader.
MAX_NUMBER: Final = (1 << 53) - 1
# How far another machine's clock may be ahead of ours, in seconds.
SKEW_S: Final = 120


class Envelope(msgspec.Struct, frozen=True):
    """A signed payload as it travels."""

    payload: str
    key: str
    sig: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A payload whose signature is good; ``key`` is the address of who signed, ``digest`` what was signed."""

    payload: bytes
    key: str
    digest: bytes


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Envelope)


def digest_of(tag: bytes, payload: bytes) -> bytes:
    """What is signed: 32 bytes."""
    return hashlib.sha256(tag + payload).digest()


def seal(tag: bytes, payload: object, key: str, sign: Signer) -> Envelope:
    """Sign ``payload`` (encoded as JSON) as the owner of the address ``key``."""
    data = _ENCODER.encode(payload)
    signature = sign(digest_of(tag, data))
    return Envelope(base64.b64encode(data).decode(), key, base64.b64encode(signature).decode())


def encode_envelope(envelope: Envelope) -> bytes:
    """An envelope as JSON."""
    return _ENCODER.encode(envelope)


def parse_envelope(data: bytes, limit: int, what: str) -> Envelope:
    """An envelope out of at most ``limit`` bytes of JSON. Raises `Refused`: too_large, malformed."""
    if len(data) > limit:
        raise Refused("too_large", f"{what} is larger than {limit} bytes")
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise Refused(
            "malformed", f"{what} is no signed document (an object of payload, key and sig)"
        ) from None


def unseal(envelope: Envelope, tag: bytes, what: str) -> Signed:
    """Check the signature by the key that the envelope names; whether that key may sign is the caller's.

    Raises `Refused`: malformed, bad_signature.
    """
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
        signature = base64.b64decode(envelope.sig, validate=True)
        public = decode_address(envelope.key)
    except (ValueError, binascii.Error):
        raise Refused("malformed", f"{what} has a payload, key or signature that cannot be read") from None
    if not verify(public, tag + payload, signature):
        raise Refused("bad_signature", f"the signature of {what} does not fit its content")
    return Signed(payload, envelope.key, digest_of(tag, payload))


def read_payload(data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """A payload by its type. Raises `Refused` malformed; what was wrong is said, no value is quoted."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise Refused("malformed", f"{what} does not have the form it must have ({_place(error)})") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise Refused("malformed", f"{what} is not JSON") from None


def check_number(value: int, name: str, what: str, *, least: int = 0) -> None:
    """Raises `Refused` malformed for a number out of range."""
    if not least <= value <= MAX_NUMBER:
        raise Refused("malformed", f"{what} has {name} out of range")


def check_window(issued_at: int, expires_at: int, now_s: int | None, longest_s: int, what: str) -> None:
    """Whether ``now_s`` (None: any time) lies in a window of at most ``longest_s``. Raises `Refused`."""
    check_number(issued_at, "issued_at", what)
    check_number(expires_at, "expires_at", what)
    if not 0 < expires_at - issued_at <= longest_s:
        raise Refused("malformed", f"{what} is not valid for between 1 and {longest_s} seconds")
    if now_s is None:
        return
    if issued_at > now_s + SKEW_S:
        ahead = issued_at - now_s
        raise Refused(
            "future", f"{what} was issued {ahead} seconds from now", "check the clocks of both machines"
        )
    if expires_at <= now_s:
        raise Refused("expired", f"{what} expired {now_s - expires_at} seconds ago")


def _place(error: msgspec.ValidationError) -> str:
    """msgspec names the field at the end, after a dash; what precedes it may quote the value."""
    _, found, place = str(error).rpartition(" - at ")
    return place if found else "at the top"
