"""Which columns a width has room for, and where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from relaydesk.surfaces.console.widgets.cells import Align

# Cells left blank at both ends of a line, so that a reversed line has a margin, and between columns.
MARGIN: Final = 1
GAP: Final = 2
# Fewer cells than this say nothing.
LEAST: Final = 4


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    ``width`` is the wanted width in cells. ``fill`` above 0 takes a share of what is left over, by weight.
    ``min_width`` is the least the column is shown at; without it that is ``width`` (a filling column: 8).
    ``priority`` 0 stays, cut below its least width where it must be; others drop, the highest number first,
    of equals the rightmost. ``descending`` is the direction the first sort takes: true for amounts, where
    the largest matters.
    """

    key: str
    title: str
    width: int = 0
    fill: int = 0
    min_width: int = 0
    align: Align = "left"
    priority: int = 0
    descending: bool = False

    def __post_init__(self) -> None:
        if self.width < 0 or self.fill < 0 or self.min_width < 0 or not (self.width or self.fill):
            raise ValueError(f"column {self.key!r} needs a width or a fill")

    @property
    def floor(self) -> int:
        """The least width this column is shown at."""
        return self.min_width or self.width or 8

    @property
    def wanted(self) -> int:
        """The width it has before what is left over is shared out."""
        return max(self.floor, self.width)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column stands: ``index`` among the table's columns, first cell ``x``, ``width``."""

    index: int
    x: int
    width: int


def lay_out(columns: Sequence[Column], width: int) -> tuple[Place, ...]:
    """The columns that fit ``width`` cells, left to right.

    Columns drop by priority until the rest fits at its floors; then those that stay are cut, the widest
    first, and drop only where `LEAST` cells each are too many. What is left over first brings columns to
    their wanted width, important ones first, then goes to those that fill.
    """
    room = width - 2 * MARGIN
    if room <= 0 or not columns:
        return ()
    kept = _kept(columns, room)
    widths = {index: columns[index].floor for index in kept}
    spare = room - sum(widths.values()) - GAP * (len(kept) - 1)
    for _ in range(-spare):
        widths[max(kept, key=lambda index: (widths[index], index))] -= 1
    if spare < 0:
        return _placed(kept, widths)
    for index in sorted(kept, key=lambda index: (columns[index].priority, index)):
        extra = min(spare, columns[index].wanted - widths[index])
        widths[index] += extra
        spare -= extra
    weights = sum(columns[index].fill for index in kept)
    for index in kept:
        weight = columns[index].fill
        if weight:
            # Dividing what is left by the weights that are left gives away every cell.
            share = spare * weight // weights
            widths[index] += share
            spare -= share
            weights -= weight
    return _placed(kept, widths)


def column_at(places: Sequence[Place], x: int) -> int | None:
    """The index of the column under cell ``x``; the gap belongs to the column on its left."""
    for place in places:
        if place.x <= x < place.x + place.width + GAP:
            return place.index
    return None


def _placed(kept: Sequence[int], widths: Mapping[int, int]) -> tuple[Place, ...]:
    places: list[Place] = []
    x = MARGIN
    for index in kept:
        places.append(Place(index, x, widths[index]))
        x += widths[index] + GAP
    return tuple(places)


def _kept(columns: Sequence[Column], room: int) -> list[int]:
    kept = list(range(len(columns)))
    while len(kept) > 1:
        next_out = max(kept, key=lambda index: (columns[index].priority, index))
        floors = [columns[index].floor for index in kept]
        if not columns[next_out].priority:
            floors = [min(floor, LEAST) for floor in floors]
        if sum(floors) + GAP * (len(kept) - 1) <= room:
            break
        kept.remove(next_out)
    return kept
