"""Pieces of one line, and the tones they may have: what status strip, tabs and footer are made of.

A tone is a meaning (`widgets.tones`); `themes` gives it a colour. Colour never stands alone: `mark` puts a
symbol before the word. Text in a piece is never markup, wherever it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from relaydesk.surfaces.console.widgets.cells import fit as fit_cells
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.tones import TONES

# Style strings of Textual for the tones of `widgets.tones`, whose variables themes give. Pill: you are here.
STYLES: Final = {
    **{name: f"{'bold ' if tone.bold else ''}$tone-{name}" for name, tone in TONES.items() if name},
    "": "",
    "pill": "bold reverse $tone-accent",
}
# One symbol for each state; `ascii` has their twins.
MARKS: Final = {"ok": "●", "info": "◐", "warn": "▲", "error": "✗", "dim": "○"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a line. ``do`` is the action that a click on it runs, empty for none."""

    text: str
    tone: str = ""
    do: str = ""

    @property
    def width(self) -> int:
        """Terminal columns."""
        return cells(self.text)


@dataclass(frozen=True, slots=True)
class Group:
    """Pieces that appear together or not at all; where room is short the lowest ``priority`` goes first."""

    pieces: tuple[Piece, ...]
    priority: int

    @property
    def width(self) -> int:
        """Terminal columns."""
        return sum(piece.width for piece in self.pieces)


def mark(tone: str, word: str) -> Piece:
    """A state: its symbol and its word."""
    symbol = MARKS.get(tone)
    return Piece(f"{symbol} {word}" if symbol else word, tone)


def fit(groups: Sequence[Group], width: int, gap: str = "  ") -> tuple[Piece, ...]:
    """As many groups as ``width`` columns hold, in order, by priority; the last resort is a cut."""
    kept = list(groups)
    while len(kept) > 1 and _total(kept, gap) > width:
        # Of equals the last goes first: lines are read from the left.
        least = min(range(len(kept)), key=lambda at: (kept[at].priority, -at))
        del kept[least]
    pieces: list[Piece] = []
    for group in kept:
        if pieces:
            pieces.append(Piece(gap))
        pieces += group.pieces
    return cut(pieces, width)


def cut(pieces: Iterable[Piece], width: int) -> tuple[Piece, ...]:
    """The pieces as far as ``width`` columns go; a cut one ends in an ellipsis."""
    kept: list[Piece] = []
    left = width
    for piece in pieces:
        if piece.width > left:
            if left > 0:
                kept.append(Piece(shorten(piece.text, left), piece.tone, piece.do))
            break
        kept.append(piece)
        left -= piece.width
    return tuple(kept)


def shorten(text: str, width: int) -> str:
    """Text in at most ``width`` columns, an ellipsis where something is missing."""
    if cells(text) <= width:
        return text
    return fit_cells(text, width)


def spread(left: Sequence[Piece], right: Sequence[Piece], width: int) -> tuple[Piece, ...]:
    """Two ends of a line with the room between them; ``right`` gives way where there is none."""
    room = width - sum(piece.width for piece in (*left, *right))
    if room < 1:
        return cut(left, width)
    return (*left, Piece(" " * room), *right)


def content(pieces: Iterable[Piece]) -> Content:
    """The pieces as Textual draws them, their text taken literally."""
    return Content.assemble(*((piece.text, STYLES[piece.tone]) for piece in pieces))


def action_at(pieces: Iterable[Piece], column: int) -> str:
    """What a click at ``column`` runs, empty for nothing."""
    at = 0
    for piece in pieces:
        at += piece.width
        if column < at:
            return piece.do
    return ""


def _total(groups: Sequence[Group], gap: str) -> int:
    return sum(group.width for group in groups) + cells(gap) * (len(groups) - 1)
