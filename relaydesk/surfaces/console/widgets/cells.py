"""Text measured in terminal cells.

A wide character takes two cells and a combining mark none. Whoever cuts by characters breaks a column, or
leaves half a character. Everything here counts with the tables Rich and Textual draw by, so that what is
measured is what is drawn.
"""

from __future__ import annotations

from typing import Final, Literal

from rich.cells import cell_len, get_character_cell_size

from relaydesk.core.text import ELLIPSIS, safe_text

Align = Literal["left", "right"]

# Terminals stack marks without end, over the lines above. No language needs more of them on one letter.
MAX_MARKS: Final = 3
# Longer than any line of a terminal; what is beyond it cannot be seen.
MAX_TEXT: Final = 2048


def width(text: str) -> int:
    """Cells a text takes on one line."""
    return len(text) if text.isascii() else cell_len(text)


def clean(text: str) -> str:
    """The text as a cell may show it: one line, nothing invisible, marks bounded.

    Owners pass `SafeText` or their own literals. This is the second lock: it costs one test for text that is
    safe already. Selectors U+FE00 to U+FE0F go too: terminals disagree about the width they give.
    """
    if not text.isprintable():
        text = safe_text(text, MAX_TEXT)
    if text.isascii():
        return text
    return _bounded(text) if len(text) > MAX_TEXT or _has_marks(text) else text


def fit(text: str, cells: int, align: Align = "left") -> str:
    """Exactly ``cells`` cells of clean text: padded, or cut with an ellipsis where it is longer.

    No wide character is split: the cell it would have needed half of stays blank.
    """
    if cells <= 0:
        return ""
    text = clean(text)
    taken = width(text)
    if taken > cells:
        text = head(text, cells - 1) + ELLIPSIS
        taken = width(text)
    blank = " " * (cells - taken)
    return blank + text if align == "right" else text + blank


def head(text: str, cells: int) -> str:
    """As much of the beginning as fits into ``cells``, with the marks of its last character."""
    if text.isascii():
        return text[: max(0, cells)]
    taken = 0
    for index, char in enumerate(text):
        size = get_character_cell_size(char)
        if taken + size > cells:
            return text[:index]
        taken += size
    return text


def wrap(text: str, cells: int) -> tuple[str, ...]:
    """A sentence broken at spaces into lines of at most ``cells``; a longer word is cut where it must be."""
    if cells <= 0:
        return ()
    lines: list[str] = []
    line = ""
    for word in clean(text).split():
        rest = word
        joined = f"{line} {rest}" if line else rest
        if width(joined) <= cells:
            line = joined
            continue
        if line:
            lines.append(line)
        while width(rest) > cells:
            # A wide character in a line of one cell fits nowhere; drop it rather than loop.
            piece = head(rest, cells)
            if piece:
                lines.append(piece)
            rest = rest[len(piece) or 1 :]
        line = rest
    return (*lines, line) if line else tuple(lines)


def _has_marks(text: str) -> bool:
    return any(get_character_cell_size(char) == 0 for char in text)


def _bounded(text: str) -> str:
    kept: list[str] = []
    marks = MAX_MARKS  # A mark with no letter before it would fall on somebody else's.
    for char in text[:MAX_TEXT]:
        if get_character_cell_size(char):
            marks = 0
        elif marks < MAX_MARKS and not "\ufe00" <= char <= "\ufe0f":
            marks += 1
        else:
            continue
        kept.append(char)
    return "".join(kept)
