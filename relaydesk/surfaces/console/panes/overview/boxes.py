"""Boxes with titles, side by side with arrows between them, or one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.spans import Line, Span, fit_line, merge

ARROW: Final = "──▸"
_EDGE: Final = "faint"


class Box(NamedTuple):
    """A title and lines; ``weight`` is its share of what is left over the ``least`` width of each."""

    title: str
    lines: tuple[Line, ...]
    least: int
    weight: int = 1


def row(boxes: Sequence[Box], width: int) -> tuple[Line, ...]:
    """The boxes beside each other, all as high as the highest, arrows in the middle of the first lines."""
    widths = share(boxes, width - cells(ARROW) * (len(boxes) - 1))
    height = max(len(box.lines) for box in boxes)
    drawn = [frame(box, each, height) for box, each in zip(boxes, widths, strict=True)]
    lines: list[Line] = []
    for y in range(height + 2):
        gap = Span(ARROW if y == 1 else " " * cells(ARROW), "accent")
        line: list[Span] = []
        for at, box in enumerate(drawn):
            line += [gap, *box[y]] if at else box[y]
        lines.append(merge(line))
    return tuple(lines)


def frame(box: Box, width: int, height: int) -> tuple[Line, ...]:
    """One box of exactly this width, with this many lines inside."""
    inner = width - 4
    title = fit(box.title, min(cells(box.title), inner))
    top = (
        Span("╭ ", _EDGE),
        Span(title, "strong"),
        Span(f" {'─' * (width - cells(title) - 4)}╮", _EDGE),
    )
    bottom = (Span(f"╰{'─' * (width - 2)}╯", _EDGE),)
    blank: Line = ()
    body = [*box.lines[:height], *[blank] * (height - len(box.lines))]
    return (
        top,
        *(merge((Span("│ ", _EDGE), *fit_line(line, inner), Span(" │", _EDGE))) for line in body),
        bottom,
    )


def share(boxes: Sequence[Box], width: int) -> list[int]:
    """The width of each box: its least, and its share of what is left over."""
    spare = max(0, width - sum(box.least for box in boxes))
    weights = sum(box.weight for box in boxes)
    widths = []
    for box in boxes:
        extra = spare * box.weight // weights if weights else 0
        widths.append(box.least + extra)
        spare -= extra
        weights -= box.weight
    return widths


def column(boxes: Sequence[Box], width: int) -> tuple[Line, ...]:
    """The boxes' lines below each other, titles at the left, for widths that have no room for frames."""
    room = max(cells(box.title) for box in boxes) + 2
    lines: list[Line] = []
    for at, box in enumerate(boxes):
        if at:
            lines.append((Span(" ▾", "accent"),))
        for y, line in enumerate(box.lines):
            head = Span(fit(box.title if y == 0 else "", room), "strong")
            lines.append(merge((head, *fit_line(line, width - room))))
    return tuple(lines)
