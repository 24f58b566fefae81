"""A table's lines as strips: titles, rows, and the sentence of an empty one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.columns import MARGIN, Column, Place
from relaydesk.surfaces.console.widgets.rows import Row, Sort
from relaydesk.surfaces.console.widgets.tones import Palette


def draw_header(
    columns: Sequence[Column],
    places: Sequence[Place],
    width: int,
    palette: Palette,
    *,
    sort: Sort | None,
    focused: bool,
    ascii: bool,
) -> Strip:
    """The titles; the one that orders carries an arrow. Strong while the table has the keys."""
    plain = palette["strong" if focused else "dim"]
    pieces: list[tuple[Place, str, Style]] = []
    for place in places:
        column = columns[place.index]
        title, style = column.title, plain
        if sort is not None and sort.key == column.key:
            arrow = ("v" if ascii else "▼") if sort.descending else ("^" if ascii else "▲")
            # The arrow stays where the title does not fit: cut the title before it.
            room = place.width - 2
            title = f"{fit(title, min(len(title), room), ascii=ascii)} {arrow}" if room > 0 else arrow
            style = palette["accent"] + Style(bold=True)
        pieces.append((place, fit(title, place.width, column.align, ascii=ascii), style))
    return _strip(pieces, width, palette[""])


def draw_row(
    row: Row,
    columns: Sequence[Column],
    places: Sequence[Place],
    width: int,
    palette: Palette,
    *,
    whole: Style | None,
    ascii: bool,
) -> Strip:
    """One row; ``whole`` is the style of every cell and of the gaps, in place of the cells' own."""
    pieces: list[tuple[Place, str, Style]] = []
    for place in places:
        cell = row.cell(place.index)
        text = fit(cell.text, place.width, columns[place.index].align, ascii=ascii)
        pieces.append((place, text, palette[cell.tone] if whole is None else whole))
    return _strip(pieces, width, palette[""] if whole is None else whole)


def draw_sentence(text: str, width: int, palette: Palette, *, ascii: bool) -> Strip:
    """A line of a sentence, dim, at the table's margin."""
    room = width - 2 * MARGIN
    pieces = (
        [(Place(0, MARGIN, room), fit(text, room, ascii=ascii), palette["dim"])] if text and room > 0 else []
    )
    return _strip(pieces, width, palette[""])


def _strip(pieces: Sequence[tuple[Place, str, Style]], width: int, blank: Style) -> Strip:
    """Texts that fill their places exactly, on a line of ``width``."""
    segments: list[Segment] = []
    x = 0
    for place, text, style in pieces:
        if place.x > x:
            segments.append(Segment(" " * (place.x - x), blank))
        segments.append(Segment(text, style))
        x = place.x + place.width
    if x < width:
        segments.append(Segment(" " * (width - x), blank))
    return Strip(segments, width)
