"""The bytes that are signed, and the signatures over them (wire §4, encoding helpers).

A record is signed over the SHA-256 of a fixed concatenation, never over its JSON, so that white space and
the order of keys mean nothing. The helpers bear the names the wire gives them.
"""

from __future__ import annotations

import binascii
import hashlib
import struct
from functools import lru_cache
from typing import Final, TypeVar

import msgspec
from nacl import bindings
from nacl.exceptions import CryptoError

T = TypeVar("T")

U64_MAX: Final = 2**64 - 1
I64_MIN: Final = -(2**63)
I64_MAX: Final = 2**63 - 1

_U32 = struct.Struct(">I").pack
_U64 = struct.Struct(">Q").pack
_I64 = struct.Struct(">q").pack


class RecordError(ValueError):
    """A record from another node that cannot be one. Its text names the fault and repeats nothing of it."""


def S(text: str) -> bytes:
    """A string: its length in bytes (u32), then UTF-8. Raises `RecordError` for what UTF-8 cannot say."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise RecordError("a text is not valid Unicode") from None
    return _U32(len(data)) + data


def U64(value: int) -> bytes:
    """An unsigned number, eight bytes, big-endian. Raises `RecordError` outside its range."""
    if not 0 <= value <= U64_MAX:
        raise RecordError("a number does not fit in 64 bits without a sign")
    return _U64(value)


def I64(value: int) -> bytes:
    """A signed number, eight bytes, two's complement, big-endian. Raises `RecordError` outside its range."""
    if not I64_MIN <= value <= I64_MAX:
        raise RecordError("a number does not fit in 64 bits")
    return _I64(value)


def B(value: bool) -> bytes:
    """Yes or no as one byte."""
    return b"\x01" if value else b"\x00"


def U8(value: int) -> bytes:
    """A small number as one byte. Raises `RecordError` outside its range."""
    if not 0 <= value <= 255:
        raise RecordError("a number does not fit in one byte")
    return bytes((value,))


def digest(data: bytes) -> bytes:
    """SHA-256, 32 bytes: what is signed of a record's canonical bytes."""
    return hashlib.sha256(data).digest()


def public_of(seed: bytes) -> bytes:
    """The Ed25519 public key (32 bytes) of a 32-byte seed."""
    return bytes(bindings.crypto_sign_seed_keypair(seed)[0])


@lru_cache(maxsize=64)
def _secret_of(seed: bytes) -> bytes:
    """The expanded secret key: made once for each of the few keys that a node signs with."""
    return bytes(bindings.crypto_sign_seed_keypair(seed)[1])


def sign(seed: bytes, canonical: bytes) -> bytes:
    """Ed25519 over the SHA-256 of ``canonical``: 64 bytes. ``seed`` has 32 bytes."""
    return bytes(bindings.crypto_sign(digest(canonical), _secret_of(seed))[:64])


def verify(public: bytes, canonical: bytes, signature: bytes) -> bool:
    """Whether ``signature`` (64 bytes) is ``public``'s (32 bytes) over the SHA-256 of ``canonical``.

    Never raises: a key or signature of the wrong length is a signature that does not hold.
    """
    if len(public) != 32 or len(signature) != 64:
        return False
    try:
        bindings.crypto_sign_open(signature + digest(canonical), public)
    except CryptoError:
        return False
    return True


def verify_text(public: bytes, canonical: bytes, signature: str) -> bool:
    """`verify` of a signature as the wire has it, in base64."""
    try:
        return verify(public, canonical, unb64(signature, "the signature", 64))
    except RecordError:
        return False


def b64(data: bytes) -> str:
    """Standard base64 with padding, the only one on this wire."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def unb64(text: str | bytes, name: str, size: int | None = None) -> bytes:
    """The bytes of strict base64: nothing but its alphabet and the right padding.

    Raises `RecordError`, which says ``name``; also where there are not exactly ``size`` bytes.
    """
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise RecordError(f"{name} is not base64") from None
    # Python's strict mode lets padding pass behind a whole group.
    if len(text) != (len(data) + 2) // 3 * 4:
        raise RecordError(f"{name} is not base64")
    if size is not None and len(data) != size:
        raise RecordError(f"{name} has not {size} bytes")
    return data


def decode_record(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw, name: str) -> T:
    """JSON as a typed record; no number is taken for a text, a flag or a fraction, nor the other way round.

    Raises `RecordError`, which says ``name``, for anything else.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise RecordError(f"{name} lacks a field or has one of the wrong kind") from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise RecordError(f"{name} is not JSON") from None
