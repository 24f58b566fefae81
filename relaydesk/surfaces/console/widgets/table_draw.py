"""A table's lines as strips: titles, rows, and the sentence of an empty one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as width_of
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
) -> Strip:
    """The titles; the one that orders carries an arrow. Strong while the table has the keys."""
    plain = palette["strong" if focused else "dim"]
    pieces: list[tuple[Place, str, Style]] = []
    for place in places:
        column = columns[place.index]
        if sort is None or sort.key != column.key:
            pieces.append((place, fit(column.title, place.width, column.align), plain))
            continue
        # The arrow takes the first cell of the gap, so that titles that fill their column stay whole.
        wide = Place(place.index, place.x, place.width + 1)
        arrow = "↓" if sort.descending else "↑"
        text = fit(column.title, place.width, "right") + arrow
        if column.align == "left":
            text = fit(column.title, min(width_of(column.title), place.width)) + arrow
            text = fit(text, wide.width)
        pieces.append((wide, text, palette["accent"] + Style(bold=True)))
    return _strip(pieces, width, palette[""])


def draw_row(
    row: Row,
    columns: Sequence[Column],
    places: Sequence[Place],
    width: int,
    palette: Palette,
    *,
    whole: Style | None,
) -> Strip:
    """One row; ``whole`` is the style of every cell and of the gaps, in place of the cells' own."""
    pieces: list[tuple[Place, str, Style]] = []
    for place in places:
        cell = row.cell(place.index)
        text = fit(cell.text, place.width, columns[place.index].align)
        pieces.append((place, text, palette[cell.tone] if whole is None else whole))
    return _strip(pieces, width, palette[""] if whole is None else whole)


def draw_sentence(text: str, width: int, palette: Palette) -> Strip:
    """A line of a sentence, dim, at the table's margin."""
    room = width - 2 * MARGIN
    pieces = [(Place(0, MARGIN, room), fit(text, room), palette["dim"])] if text and room > 0 else []
    return _strip(pieces, width, palette[""])


def _strip(pieces: Sequence[tuple[Place, str, Style]], width: int, blank: Style) -> Strip:
    """Texts that fill their places exactly, on a line of ``width``.

    Blanks at the ends of a text join the gap beside it: fewer segments to draw.
    """
    segments: list[Segment] = []
    done = 0
    for place, text, style in pieces:
        body = text.lstrip(" ")
        start = place.x + len(text) - len(body)
        body = body.rstrip(" ")
        if not body:
            continue
        if start > done:
            segments.append(Segment(" " * (start - done), blank))
        segments.append(Segment(body, style))
        done = start + width_of(body)
    if done < width:
        segments.append(Segment(" " * (width - done), blank))
    return Strip(segments, width)
