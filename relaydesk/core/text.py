"""Text that came from somebody else, made safe to show.

A peer, a model file or a client may put terminal escapes, bidi overrides or a megabyte of text into a
name. ``SafeText`` is made once, where such text is decoded, and everything behind that point takes only
``SafeText``: what reaches a screen, a log or a header can no longer move the cursor or reorder a line.
"""

from __future__ import annotations

import unicodedata
from typing import Final

DEFAULT_LIMIT: Final = 256
ELLIPSIS: Final = "…"

# Cc: C0 and C1 controls (ESC among them). Cf: bidi controls, zero-width and other invisible formatting.
# Cs: lone surrogates, which no encoder accepts. Co and Cn render as nothing anybody agreed on.
# Zl and Zp break a line where the reader does not expect one.
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class SafeText(str):
    """A string without controls, escapes, bidi or invisible characters, at most a known length.

    Only `safe_text` makes one.
    """

    __slots__ = ()


def safe_text(text: str, limit: int = DEFAULT_LIMIT) -> SafeText:
    """Make foreign text safe: one line, visible characters only, at most ``limit`` characters.

    White space of any kind becomes one plain space, so that words stay apart. A cut is shown by ``…``,
    which counts towards the limit.
    """
    if limit < 1:
        raise ValueError("limit must be at least 1")
    # ``isprintable`` is false for exactly the categories dropped below and for spaces other than U+0020, so
    # that text that is safe already, nearly all there is, costs no walk.
    if len(text) <= limit and text.isprintable() and "  " not in text and text == text.strip(" "):
        return SafeText(text)
    # Nothing past this bound can matter to the result, and a megabyte must not be walked on the loop.
    head = text[: limit * 4 + 64]
    kept: list[str] = []
    space_due = False
    for char in head:
        if char.isspace():
            space_due = bool(kept)
            continue
        if unicodedata.category(char) in _DROPPED:
            continue
        if space_due:
            kept.append(" ")
            space_due = False
        kept.append(char)
        if len(kept) > limit:
            break
    result = "".join(kept)
    if len(result) > limit or len(head) < len(text):
        result = result[: limit - 1].rstrip() + ELLIPSIS
    return SafeText(result)


def safe_piece(text: str) -> str:
    """A piece of a longer text for a terminal: spaces and line ends stay, nothing else invisible does.

    For an answer shown as it streams, where a piece may begin or end with a space.
    """
    return "".join(
        char if char in " \n" else " " if char.isspace() else char
        for char in text
        if char.isspace() or unicodedata.category(char) not in _DROPPED
    )
