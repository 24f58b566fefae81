"""Addresses of keys, and the ids of operators that follow from them.

An address is base32 of an Ed25519 public key and a checksum (wire §4.1): no chain is needed to make or read
one. Here an operator's id follows from its owner key (design §6), so that no directory numbers anybody.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

KEY_BYTES: Final = 32
_CHECKSUM_BYTES: Final = 4
_ADDRESS: Final = re.compile(r"[A-Z2-7]{58}")
_PADDING: Final = "=" * 6
# Numbers above this lose bits in clients that keep them as doubles.
_ID_BITS: Final = 53


def encode_address(public_key: bytes) -> str:
    """The 58 characters that name a public key of 32 bytes. Raises `ValueError` for any other length."""
    if len(public_key) != KEY_BYTES:
        raise ValueError("a public key has 32 bytes")
    return base64.b32encode(public_key + _checksum(public_key)).decode("ascii").rstrip("=")


def decode_address(address: str) -> bytes:
    """The public key in an address. Raises `ValueError` for a spelling that none has."""
    if not _ADDRESS.fullmatch(address):
        raise ValueError("an address has 58 characters out of A-Z and 2-7")
    key = base64.b32decode(address + _PADDING)[:KEY_BYTES]
    # Compared as text: the last character has two bits that decoding drops, and the checksum is in it.
    if encode_address(key) != address:
        raise ValueError("the checksum of the address does not fit")
    return key


def operator_id(owner_key: bytes) -> int:
    """The id of the operator with this public owner key: the first 53 bits of its SHA-256 (design §6).

    Raises `ValueError` where the key has not 32 bytes.
    """
    if len(owner_key) != KEY_BYTES:
        raise ValueError("a public key has 32 bytes")
    return int.from_bytes(hashlib.sha256(owner_key).digest()[:8], "big") >> (64 - _ID_BITS)


def _checksum(public_key: bytes) -> bytes:
    return _sha512_256(public_key)[-_CHECKSUM_BYTES:]


def _sha512_256(data: bytes) -> bytes:
    try:
        return hashlib.new("sha512_256", data).digest()
    except ValueError:
        # `hashlib` has it only where the OpenSSL it was built with does; this one is slow to load.
        from cryptography.hazmat.primitives import hashes

        digest = hashes.Hash(hashes.SHA512_256())
        digest.update(data)
        return digest.finalize()
