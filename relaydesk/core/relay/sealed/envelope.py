"""The outer body of everything sealed to a node: one key, ``ciphertext`` (wire §4.3, §4.4).

One key and no other: whatever else stood here would be read by the relay.
"""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.ports import Age, AgeIdentity
from relaydesk.core.relay.records.canonical import RecordError, b64, decode_record, unb64


class SealedError(ValueError):
    """Sealed bytes that do not open, or are not what they must be. Its text repeats nothing of them."""


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ciphertext: msgspec.Raw


_DECODER: Final = msgspec.json.Decoder(_Envelope)
_TEXT: Final = msgspec.json.Decoder(str)


def write_envelope(ciphertext: bytes) -> bytes:
    """The JSON body that carries ``ciphertext``."""
    return b'{"ciphertext":"' + b64(ciphertext).encode() + b'"}'


def read_envelope(body: bytes, limit: int) -> bytes:
    """The ciphertext of a body of at most ``limit`` bytes. Raises `SealedError`."""
    if len(body) > limit:
        raise SealedError("the envelope is too large")
    # The key and a text of base64 have four quotes; a second key, even the same one, has more.
    if body.count(b'"') != 4:
        raise SealedError("the envelope is not exactly one key ciphertext with its text")
    try:
        text = bytes(decode_record(_DECODER, body, "the envelope").ciphertext)
        data = unb64(_inside(text), "the ciphertext")
    except RecordError as error:
        raise SealedError(str(error)) from None
    if not data:
        raise SealedError("the ciphertext is empty")
    return data


def _inside(text: bytes) -> bytes | str:
    """What a JSON string says. Base64 needs no escapes, but some writers escape its slash."""
    if text[:1] != b'"' or b"\\" in text:
        return decode_record(_TEXT, text, "the ciphertext")
    return text[1:-1]


def seal_envelope(age: Age, plaintext: bytes, recipient: str) -> bytes:
    """The body with ``plaintext`` sealed to ``recipient``. Raises `ValueError` where that is none."""
    return write_envelope(age.seal(plaintext, recipient))


def open_envelope(identity: AgeIdentity, body: bytes, limit: int) -> bytes:
    """The plaintext of a body sealed to ``identity``. Raises `SealedError`."""
    ciphertext = read_envelope(body, limit)
    try:
        return identity.open(ciphertext)
    except ValueError:
        raise SealedError("the ciphertext was not sealed to this key") from None
