"""A row of bars, one for each of the latest samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from relaydesk.surfaces.console.widgets.lines import Lines
from relaydesk.surfaces.console.widgets.spans import Line, Span

# The first level is for nothing; whatever is more than nothing stands higher.
BLOCKS: Final = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS: Final = "_.:-=+*#"


def sparkline(
    values: Sequence[float | None], width: int, *, ascii: bool = False, peak: float | None = None
) -> str:
    """The last ``width`` values, the newest at the right, in exactly ``width`` cells.

    Heights are shares of ``peak``, or of the largest value shown. None and NaN are gaps; what is below zero
    counts as zero. One sample is one cell, so that the row moves left and never changes its shape.
    """
    if width <= 0:
        return ""
    levels = ASCII_BLOCKS if ascii else BLOCKS
    shown = [_known(value) for value in values[-width:]]
    top = (
        peak
        if peak is not None and peak > 0
        else max((value for value in shown if value is not None), default=0.0)
    )
    text = "".join(" " if value is None else levels[_level(value, top, len(levels) - 1)] for value in shown)
    return text.rjust(width)


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else max(0.0, value)


def _level(value: float, top: float, steps: int) -> int:
    if value <= 0 or top <= 0:
        return 0
    if value >= top:
        return steps
    return max(1, math.ceil(value / top * steps))


class Sparkline(Lines):
    """The values of a rate over time, as wide as the widget: ``spark.values = (…)``."""

    DEFAULT_CSS = """
    Sparkline { height: 1; }
    """

    def __init__(
        self, values: Sequence[float | None] = (), *, tone: str = "accent", id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._values = tuple(values)
        self._tone = tone

    @property
    def values(self) -> tuple[float | None, ...]:
        """The samples, oldest first."""
        return self._values

    @values.setter
    def values(self, values: Sequence[float | None]) -> None:
        self._values = tuple(values)
        self.update()

    def lines_for(self, width: int, height: int) -> tuple[Line, ...]:
        """The row for this width."""
        return ((Span(sparkline(self._values, width, ascii=self.ascii), self._tone),),)
