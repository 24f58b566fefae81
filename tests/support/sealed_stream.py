"""Sealed events made by hand with another library, for tests of both ends."""

from __future__ import annotations

import base64
import struct

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY = bytes(range(32))
NONCE = bytes(range(12))
DONE = b"data: [DONE]\n\n"


def event(name: bytes, aad: bytes, plaintext: bytes) -> bytes:
    """One event sealed under ``KEY`` for the exchange ``TX``, ``T1``."""
    sealed = NONCE + ChaCha20Poly1305(KEY).encrypt(NONCE, plaintext, aad)
    return b"event: " + name + b"\ndata: " + base64.b64encode(sealed) + b"\n\n"


def content(index: int, chunk: bytes) -> bytes:
    """A content frame at its place."""
    return event(b"zs", b"zs\0frame\0TX\0T1\0" + struct.pack(">Q", index), chunk)


def receipt(index: int, data: bytes) -> bytes:
    """A receipt at its place."""
    return event(b"zs-receipt", b"zs\0frame\0TX\0T1\0" + struct.pack(">Q", index), data)


def settle(group: bytes) -> bytes:
    """A settle group, which has no place."""
    return event(b"zs-settle-group", b"zs\0hdr\0TX\0T1\0settle-group", base64.b64encode(group))
