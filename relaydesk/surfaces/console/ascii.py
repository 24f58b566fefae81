"""``--ascii``: nothing but ASCII leaves, whatever a pane, a widget or the toolkit draws.

A filter over finished lines, so that no pane needs to know. Charts that have a better twin than a filter can
give ask `ConsoleApp.ascii`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

# Twins of equal width, so that nothing moves.
_TWINS: Final = str.maketrans(
    {
        **dict(zip("●◐▲✗✓○◌◆◇", "*~!xv-.oo", strict=True)),
        **dict(zip("·–—…→←↑↓▸▾▴×≤≥≈±", "---~><^v>v^x<>~~", strict=True)),
        **dict.fromkeys("│┃║▏▎▍▌▐▕┆┊", "|"),
        **dict.fromkeys("─━═▔▁┄┈╌", "-"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛╔╗╚╝▛▜▙▟", "+"),
        **dict.fromkeys("█▉▊▋▇▆", "#"),
        **dict.fromkeys("▅▄▓", "="),
        **dict.fromkeys("▃▒", "+"),
        **dict.fromkeys("▂░", "."),
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("‘’‚", "'"),
        "\u00a0": " ",
        "\u202f": " ",
    }
)


@lru_cache(maxsize=4096)
def to_ascii(text: str) -> str:
    """``text`` in ASCII and as wide as before; what has no twin becomes question marks."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else "?" * cell_len(char) for char in text.translate(_TWINS))


class AsciiFilter(LineFilter):
    """`to_ascii` over every line."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isascii()
            else Segment(to_ascii(segment.text), segment.style, segment.control)
            for segment in segments
        ]
