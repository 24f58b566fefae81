"""Text of our own in lines: strips, details, sentences, charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from relaydesk.surfaces.console.widgets.line_view import LineView
from relaydesk.surfaces.console.widgets.spans import Line, fit_line
from relaydesk.surfaces.console.widgets.tones import Palette


class Lines(LineView):
    """Lines as values: ``view.lines = (...)`` draws those that changed.

    A subclass that makes its lines for a size overrides `lines_for`. Scrolls where its sheet lets it; with
    ``height: auto`` it is as high as its lines.
    """

    DEFAULT_CSS = """
    Lines { height: auto; }
    """

    def __init__(
        self,
        lines: Sequence[Line] = (),
        *,
        ascii: bool | None = None,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(ascii=ascii, name=name, id=id, classes=classes)
        self._given: tuple[Line, ...] = tuple(lines)
        self._lines: tuple[Line, ...] = self._given

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is shown."""
        return self._lines

    @lines.setter
    def lines(self, lines: Sequence[Line]) -> None:
        self._given = tuple(lines)
        self.update()

    def lines_for(self, width: int, height: int) -> tuple[Line, ...]:
        """The lines for a size in cells; ``height`` is 0 where the lines decide it."""
        return self._given

    def update(self) -> None:
        """What the lines are made from is something else."""
        self.laid_out()
        self.repaint()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as there are."""
        return len(self.lines_for(width, 0))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """All there is: lines are cut to the width, not the width to lines."""
        return container.width

    def line_content(self, y: int) -> Line | None:
        """The line at this place, None below the last."""
        index = self.top + y
        return self._lines[index] if index < len(self._lines) else None

    def draw_line(self, content: object, palette: Palette) -> Strip:
        """Spans in their tones, cut and padded to the width."""
        width = self.line_width
        if not isinstance(content, tuple):
            return Strip.blank(width, palette[""])
        return Strip(list(_segments(fit_line(content, width), palette)), width)

    def laid_out(self) -> None:
        """Lines for the new size; before there is one, those that were given."""
        width = self.line_width
        self._lines = self.lines_for(width, self.size.height) if width else self._given
        self.set_lines(len(self._lines))


def _segments(line: Line, palette: Palette) -> Iterator[Segment]:
    """Blanks before a span's text stand in the plain tone: some renderers of SVG drop them otherwise."""
    for span in line:
        body = span.text.lstrip(" ")
        if len(body) < len(span.text):
            yield Segment(" " * (len(span.text) - len(body)), palette[""])
        if body:
            yield Segment(body, palette[span.tone])
