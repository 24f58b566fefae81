"""Images of Ollama's dialect: bare base64, whose kind only the bytes themselves tell."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, invalid, present, require_string, unsupported

MAX_IMAGES: Final = 64

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SPACE: Final = b" \t\r\n"
_TEXT: Final = decoder(str)
# Enough base64 for every magic number below.
_HEAD: Final = 24


def image_part(raw: Raw, at: str) -> bytes:
    """One image as a part of a chat message.

    Raises `PeerError` naming ``at`` where it is no base64, or of a kind nobody knows.
    """
    data = require_string(present(raw) or b"null", at)
    text = data[1:-1]
    if b"\\" in text:
        # Escaped slashes and line feeds: base64 all the same.
        text = decode(_TEXT, data, at).encode()
    if text.startswith(b"data:"):
        text = text.partition(b",")[2]
    text = text.translate(None, _SPACE)
    bare = text.rstrip(b"=")
    if not bare or bare.translate(None, _ALPHABET) or len(bare) % 4 == 1 or len(text) - len(bare) > 2:
        raise invalid(at, f"{at} must be an image in base64")
    kind = _kind(bare[:_HEAD])
    if not kind:
        raise unsupported(
            at, f"{at} is no image that is known here", "send PNG, JPEG, GIF, WebP or BMP in base64"
        )
    # Nothing in base64 needs an escape.
    return b'{"type":"image_url","image_url":{"url":"data:image/%b;base64,%b%b"}}' % (
        kind,
        bare,
        b"=" * (-len(bare) % 4),
    )


def _kind(start: bytes) -> bytes:
    """The kind by its magic number; empty where it is none of these."""
    try:
        head = base64.b64decode(start[: len(start) // 4 * 4])
    except binascii.Error:
        return b""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return b"png"
    if head.startswith(b"\xff\xd8\xff"):
        return b"jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return b"gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return b"webp"
    return b"bmp" if head.startswith(b"BM") else b""
