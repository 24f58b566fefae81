"""How large an image is, read from the first bytes of its inline data.

Rule (wire §5.4): PNG, JPEG and WebP say their size in a header that decoders believe too. GIF is left out on
purpose: its header's size is not the one that decoders use, and the sender may write anything there. Nothing
is decompressed, and at most `SCANNED_BYTES` of an image are looked at, however long it is.
"""

from __future__ import annotations

import binascii
from typing import Final, NamedTuple

SCANNED_BYTES: Final = 64 * 1024
# Base64 of that much: whole groups of four characters for three bytes.
_SCANNED_CHARS: Final = (SCANNED_BYTES // 3 + 1) * 4
_MARK: Final = ";base64,"
# What encoders that wrap their lines put between the characters.
_SPACES: Final = str.maketrans("", "", " \t\r\n\v\f")
_PNG: Final = b"\x89PNG\r\n\x1a\n"
# Markers of JPEG that stand alone, and start-of-frame ones: C4, C8 and CC mean something else.
_LONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# More steps than a picture has segments before its first frame: what makes more of them is made to.
_MAX_STEPS: Final = 2048
_SCAN_OR_END: Final = frozenset({0xD9, 0xDA})


class ImageSize(NamedTuple):
    """Pixels as the header says them; either may be 0 where it says nonsense."""

    width: int
    height: int


def size_of_url(url: str) -> ImageSize | None:
    """The size of the image in a ``data:`` URL, None where it cannot be told."""
    return size_of(_leading_bytes(url))


def size_of(data: bytes) -> ImageSize | None:
    """The size of the image that begins with ``data``, None where it cannot be told."""
    if len(data) >= 24 and data.startswith(_PNG) and data[12:16] == b"IHDR":
        return ImageSize(int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    if len(data) >= 16 and data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    if len(data) >= 4 and data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    return None


def _leading_bytes(url: str) -> bytes:
    """The first bytes of the payload, empty where it is no base64."""
    at = url.find(_MARK) if url.startswith("data:") else -1
    if at < 0:
        return b""
    begin = at + len(_MARK)
    text = url[begin : begin + 2 * _SCANNED_CHARS].translate(_SPACES)
    if len(text) < _SCANNED_CHARS:
        # Short, or mostly white space: then all of it counts.
        text = url[begin:].translate(_SPACES)
    text = text[:_SCANNED_CHARS]
    text = text[: len(text) - len(text) % 4]
    # The second try is for padding that does not fit what it follows.
    bare = text.rstrip("=")
    for attempt in (text, bare + "=" * (-len(bare) % 4)):
        try:
            return binascii.a2b_base64(attempt, strict_mode=True)
        except (binascii.Error, ValueError):
            continue
    return b""


def _webp(data: bytes) -> ImageSize | None:
    """The three layouts: extended (size less one in 24 bits), lossy and lossless (14 bits each)."""
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return ImageSize(_little(data, 24, 3) + 1, _little(data, 27, 3) + 1)
    if kind == b"VP8 " and len(data) >= 30 and data[23:26] == b"\x9d\x01\x2a":
        return ImageSize(_little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF)
    if kind == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = _little(data, 21, 4)
        return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    return None


def _jpeg(data: bytes) -> ImageSize | None:
    """Follow the segments to the first start of frame, which holds the height and the width."""
    at = 2
    for _ in range(_MAX_STEPS):
        if at + 3 >= len(data):
            return None
        if data[at] != 0xFF:
            # Not where a marker should be: on to the next byte that may begin one.
            at = data.find(b"\xff", at)
            if at < 0:
                return None
            continue
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in _LONE:
            at += 2
            continue
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if marker in _SCAN_OR_END or length < 2:
            return None
        if marker in _FRAMES:
            if at + 9 > len(data):
                return None
            height, width = data[at + 5 : at + 7], data[at + 7 : at + 9]
            return ImageSize(int.from_bytes(width, "big"), int.from_bytes(height, "big"))
        at += 2 + length
    return None


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
