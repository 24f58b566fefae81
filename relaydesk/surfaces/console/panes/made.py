"""Lines that a function makes for a width: a presenter as a widget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from relaydesk.surfaces.console.widgets.lines import Lines
from relaydesk.surfaces.console.widgets.spans import Line, Span

# From a size in cells (the height is 0 where the lines decide it) and whether to draw in ASCII.
Make: TypeAlias = Callable[[int, int, bool], tuple[Line, ...]]


class Made(Lines, can_focus=False):
    """``made.show(function)`` draws what the function makes of the widget's size, at any size."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._make: Make | None = None
        self._dimmed = False

    def show(self, make: Make | None) -> None:
        """Draw what this makes from now on; lines that are the same cost nothing but their making."""
        self._make = make
        self.update()

    def lines_for(self, width: int, height: int) -> tuple[Line, ...]:
        """What the function makes of the size."""
        lines = self._make(width, height, self.ascii) if self._make is not None and width > 0 else ()
        return (
            tuple(tuple(Span(span.text, "dim") for span in line) for line in lines) if self._dimmed else lines
        )

    @property
    def dimmed(self) -> bool:
        """Whether what is shown is old: whoever shows it says since when."""
        return self._dimmed

    @dimmed.setter
    def dimmed(self, dimmed: bool) -> None:
        if dimmed != self._dimmed:
            self._dimmed = dimmed
            self.update()
