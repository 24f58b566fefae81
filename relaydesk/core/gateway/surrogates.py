r"""Characters cut in two: UTF-16 halves that an engine sends in different chunks, or alone.

Some servers cut text between the two escapes of one character (``\ud83d`` and ``\ude0a``). Strict readers
refuse a chunk with half of one, so a half is held back until the other comes, and is U+FFFD where none does.

Our own reader is as strict: a chunk that holds halves is read with stand-ins in their place (`tagged`), and
the texts found in it get them back (`untagged`).
"""

from __future__ import annotations

import re
from typing import Final

# Every escape is taken as a whole, so that a backslash that is itself escaped opens none.
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_LOST: Final = rb"\ufffd"
_HALF: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves of one
    rb"|\\u([dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
# The last 2048 code points there are: private ones, as many as there are halves.
_STAND_INS: Final = 0x10F800
_STAND_IN: Final = re.compile(rb"\\u(dbf[ef])\\u(d[c-f][0-9a-f]{2})")


class Surrogates:
    """The text of one field over its pieces, JSON strings with their quotes."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def read(self, text: bytes) -> bytes:
        """``text`` without halves, empty where nothing is left to say yet."""
        if not self._held and b"\\u" not in text:
            return text
        parts: list[bytes] = []
        held, at = self._held, 1
        for found in _ESCAPE.finditer(text, 1, len(text) - 1):
            code = int(found[1], 16) if found[1] else 0
            if held and found.start() > at:
                parts.append(_LOST)
                held = b""
            parts.append(text[at : found.start()])
            at = found.end()
            if 0xDC00 <= code < 0xE000:
                parts.append(held + found[0] if held else _LOST)
                held = b""
                continue
            if held:
                parts.append(_LOST)
            held = found[0] if 0xD800 <= code < 0xDC00 else b""
            if not held:
                parts.append(found[0])
        rest = text[at:-1]
        if held and rest:
            parts.append(_LOST)
            held = b""
        self._held = held
        mended = b"".join((*parts, rest))
        return b'"%b"' % mended if mended else b""

    def end(self) -> bytes:
        """What is still held back, as nothing can follow it; empty for nothing."""
        held, self._held = self._held, b""
        return b'"%b"' % _LOST if held else b""


def tagged(data: bytes) -> bytes:
    """JSON with stand-ins for lone halves; ``data`` itself where it has none."""
    return _HALF.sub(_tag, data)


def untagged(text: bytes) -> bytes:
    """A text out of a tagged chunk, with its halves again."""
    return _STAND_IN.sub(_untag, text)


def _tag(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return found[0]
    units = chr(_STAND_INS + int(found[1], 16) - 0xD800).encode("utf-16-be")
    return rb"\u%b\u%b" % (units[:2].hex().encode(), units[2:].hex().encode())


def _untag(found: re.Match[bytes]) -> bytes:
    code = ord(bytes.fromhex((found[1] + found[2]).decode()).decode("utf-16-be"))
    return rb"\u%04x" % (code - _STAND_INS + 0xD800) if code >= _STAND_INS else found[0]
