"""What a whole is made of: a bar of pieces, and a legend that says it in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from relaydesk.surfaces.console.widgets.cells import width as width_of
from relaydesk.surfaces.console.widgets.lines import Lines
from relaydesk.surfaces.console.widgets.spans import Line, Span, line_width, merge

# A filling of its own for each piece: without colours the legend still says which is which.
FILLS: Final = "█▓▒░▚"
ASCII_FILLS: Final = "#=+-%"
FREE: Final = "·"
ASCII_FREE: Final = "."


class Part(NamedTuple):
    """A piece of a whole: its name, how much it is, and its tone."""

    label: str
    value: float
    tone: str = ""


def stacked_bar(parts: Sequence[Part], total: float, width: int, *, ascii: bool = False) -> Line:
    """One line of exactly ``width`` cells; ``total`` is the whole width, and what no part takes is free.

    Parts that add up to more than the total are drawn to scale, and `limit_line` shows where the total ends.
    A part that is more than nothing has at least one cell where there are as many cells as parts.
    """
    if width <= 0:
        return ()
    cells = allot([part.value for part in parts], max(total, _sum(parts)), width)
    spans = [
        Span(fill(index, ascii=ascii) * count, part.tone)
        for index, (part, count) in enumerate(zip(parts, cells, strict=True))
    ]
    return merge((*spans, Span((ASCII_FREE if ascii else FREE) * (width - sum(cells)), "faint")))


def limit_line(
    parts: Sequence[Part], total: float, width: int, label: str, *, tone: str = "", ascii: bool = False
) -> Line:
    """A mark below a bar where the total ends, with a label beside it: ``▲ 512 MiB free``.

    The label stands left of the mark where it does not fit at the right; exactly ``width`` cells.
    """
    if width <= 0:
        return ()
    whole = max(total, _sum(parts))
    at = min(width - 1, max(0, round(total / whole * width) - 1)) if whole > 0 else 0
    mark = "^" if ascii else "▲"
    size = width_of(label)
    if at + 2 + size <= width:
        line = [Span(" " * at), Span(f"{mark} {label}", tone)]
    elif size + 1 <= at:
        line = [Span(" " * (at - size - 1)), Span(f"{label} {mark}", tone)]
    else:
        line = [Span(" " * at), Span(mark, tone)]
    return merge((*line, Span(" " * (width - line_width(tuple(line))))))


def legend(
    parts: Sequence[Part], width: int, say: Callable[[float], str] = str, *, ascii: bool = False
) -> tuple[Line, ...]:
    """A line for each part: its filling, its name, and its amount at one right edge.

    ``say`` puts an amount into words. No line is wider than ``width``; names are cut by whoever draws them.
    """
    if width <= 0:
        return ()
    amounts = [say(part.value) for part in parts]
    names = max((width_of(part.label) for part in parts), default=0)
    room = max((width_of(amount) for amount in amounts), default=0)
    lines = []
    for index, (part, amount) in enumerate(zip(parts, amounts, strict=True)):
        gap = names - width_of(part.label) + 2 + room - width_of(amount)
        lines.append(
            merge(
                (
                    Span(fill(index, ascii=ascii) * 2, part.tone),
                    Span(f" {part.label}{' ' * gap}"),
                    Span(amount, "strong"),
                )
            )
        )
    return tuple(lines)


def fill(index: int, *, ascii: bool = False) -> str:
    """The filling of a bar's part by its place."""
    fills = ASCII_FILLS if ascii else FILLS
    return fills[index % len(fills)]


def allot(values: Sequence[float], whole: float, width: int) -> list[int]:
    """Cells for each value, by largest remainder; never more than ``width`` together.

    What is more than nothing gets a cell, at the cost of the largest, while there are cells enough.
    """
    if whole <= 0 or width <= 0:
        return [0] * len(values)
    exact = [max(0.0, value) / whole * width for value in values]
    cells = [int(share) for share in exact]
    aim = min(width, round(sum(exact)))
    for index in sorted(range(len(values)), key=lambda index: cells[index] - exact[index]):
        if sum(cells) >= aim:
            break
        cells[index] += 1
    seen = [index for index, value in enumerate(values) if value > 0]
    if len(seen) <= width:
        for index in seen:
            if cells[index] == 0:
                cells[index] = 1
                largest = max(range(len(cells)), key=lambda place: cells[place])
                if sum(cells) > width or cells[largest] > 1:
                    cells[largest] -= 1
    return cells


def _sum(parts: Sequence[Part]) -> float:
    return sum(max(0.0, part.value) for part in parts)


class StackedBar(Lines):
    """A bar and its legend: ``bar.show(parts, total)``."""

    def __init__(
        self, *, say: Callable[[float], str] = str, with_legend: bool = True, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._say = say
        self._with_legend = with_legend
        self._parts: tuple[Part, ...] = ()
        self._total = 0.0
        self._limit = ""

    def show(self, parts: Sequence[Part], total: float, limit: str = "") -> None:
        """Show these parts of this total; ``limit`` is the label of the mark where the total ends."""
        self._parts, self._total, self._limit = tuple(parts), total, limit
        self.update()

    def lines_for(self, width: int, height: int) -> tuple[Line, ...]:
        """The bar, its limit and the legend for this width."""
        parts, total = self._parts, self._total
        lines = [stacked_bar(parts, total, width, ascii=self.ascii)]
        if self._limit:
            tone = "error" if _sum(parts) > total else "dim"
            lines.append(limit_line(parts, total, width, self._limit, tone=tone, ascii=self.ascii))
        if self._with_legend:
            lines += legend(parts, width, self._say, ascii=self.ascii)
        return tuple(lines)
