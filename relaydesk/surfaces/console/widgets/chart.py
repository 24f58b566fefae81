"""A line over time: two by four dots a cell in braille, and a twin in ASCII."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as width_of
from relaydesk.surfaces.console.widgets.lines import Lines
from relaydesk.surfaces.console.widgets.spans import Line, Span, merge

# Bits of a braille cell's dots (Unicode, block U+2800): rows from the bottom, left and right.
_DOTS: Final = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))
_BRAILLE: Final = 0x2800
# An ASCII cell has three heights. A line that climbs within a cell is a stroke.
_ASCII_LINE: Final = "_-^"
_ASCII_AREA: Final = ".:#"
# Fewer cells than this show no course: the amounts at the left go first.
_LEAST_PLOT: Final = 8


class Series(NamedTuple):
    """Samples of one quantity, oldest first; None is a gap."""

    values: Sequence[float | None]
    tone: str = "accent"


class _Raster(NamedTuple):
    """How finely a cell is divided: samples across, heights up."""

    across: int
    up: int


_FINE: Final = _Raster(2, 4)
_COARSE: Final = _Raster(1, 3)


def line_chart(
    series: Sequence[Series],
    width: int,
    height: int,
    *,
    peak: float | None = None,
    filled: bool = False,
    say: Callable[[float], str] = "{:g}".format,
    ascii: bool = False,
) -> tuple[Line, ...]:
    """``height`` lines of exactly ``width`` cells: amounts at the left, then the latest samples.

    A cell is two samples wide (one in ASCII); the newest stand at the right edge. The top is ``peak``, or a
    round number that no value shown exceeds. ``filled`` draws the area below. Where two series share a cell
    the later one gives the tone.
    """
    if width <= 0 or height <= 0:
        return ()
    raster = _COARSE if ascii else _FINE
    # The amounts' width depends on the top, and that on how many samples there is room for: take all.
    top = peak if peak is not None and peak > 0 else round_top(_largest(series, width * raster.across))
    labels = _labels(top, height, say)
    room = max(width_of(label) for label in labels)
    plot = width - room - 2
    if plot < _LEAST_PLOT:
        labels, plot = [], width
    grid = _plot(series, plot, height, top, raster, filled=filled)
    bar = "|" if ascii else "│"
    lines = []
    for y, cells in enumerate(grid):
        axis = (Span(f"{fit(labels[y], room, 'right')} {bar}", "dim"),) if labels else ()
        body = (Span(_glyph(bits, ascii=ascii, filled=filled), tone) for bits, tone in cells)
        lines.append(merge((*axis, *body)))
    return tuple(lines)


def round_top(value: float) -> float:
    """The least of 1, 2, 5, 10, 20, 50, … (and their tenths) that is not below the value."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next((step * unit for step in (1, 2, 5) if step * unit >= value), 10 * unit)


def _largest(series: Sequence[Series], samples: int) -> float:
    shown = (value for one in series for value in one.values[-samples:])
    return max((value for value in shown if value is not None and math.isfinite(value)), default=0.0)


def _labels(top: float, height: int, say: Callable[[float], str]) -> list[str]:
    labels = [""] * height
    labels[-1] = say(0.0)
    if height >= 5 and height % 2:
        labels[height // 2] = say(top / 2)
    labels[0] = say(top)
    return labels


def _plot(
    series: Sequence[Series], width: int, height: int, top: float, raster: _Raster, *, filled: bool
) -> list[list[tuple[int, str]]]:
    """For each cell the bits of its heights and the tone; from the top line down."""
    grid: list[list[tuple[int, str]]] = [[(0, "")] * width for _ in range(height)]
    for one in series:
        for column, low, high in _strokes(one.values, width * raster.across, height * raster.up, top, filled):
            x, side = divmod(column, raster.across)
            for level in range(low, high + 1):
                y, step = divmod(level, raster.up)
                line = grid[height - 1 - y]
                bit = _DOTS[step][side] if raster is _FINE else 1 << step
                line[x] = (line[x][0] | bit, one.tone)
    return grid


def _strokes(
    values: Sequence[float | None], columns: int, levels: int, top: float, filled: bool
) -> Iterator[tuple[int, int, int]]:
    """For each sample its column and the heights it covers: from its neighbour's on the left to its own."""
    shown = values[-columns:]
    before: int | None = None
    for column, value in enumerate(shown, columns - len(shown)):
        if value is None or math.isnan(value):
            before = None
            continue
        level = int(min(1.0, max(0.0, value / top)) * (levels - 1) + 0.5)
        if filled:
            yield column, 0, level
        elif before is None or abs(level - before) <= 1:
            yield column, level, level
        else:
            yield (column, before + 1, level) if level > before else (column, level, before - 1)
        before = level


def _glyph(bits: int, *, ascii: bool, filled: bool) -> str:
    if not ascii:
        return chr(_BRAILLE + bits) if bits else " "
    if not bits:
        return " "
    if filled:
        return _ASCII_AREA[bits.bit_length() - 1]
    return "|" if bits.bit_count() > 1 else _ASCII_LINE[bits.bit_length() - 1]


class LineChart(Lines):
    """A chart as large as the widget: ``chart.series = (Series(values), …)``."""

    DEFAULT_CSS = """
    LineChart { height: 5; }
    """

    def __init__(
        self,
        series: Sequence[Series] = (),
        *,
        peak: float | None = None,
        filled: bool = False,
        say: Callable[[float], str] = "{:g}".format,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._series = tuple(series)
        self._peak = peak
        self._filled = filled
        self._say = say

    @property
    def series(self) -> tuple[Series, ...]:
        """What is drawn, the last on top."""
        return self._series

    @series.setter
    def series(self, series: Sequence[Series]) -> None:
        self._series = tuple(series)
        self.update()

    def lines_for(self, width: int, height: int) -> tuple[Line, ...]:
        """The chart for this size."""
        return line_chart(
            self._series,
            width,
            height,
            peak=self._peak,
            filled=self._filled,
            say=self._say,
            ascii=self.ascii,
        )
