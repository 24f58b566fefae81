from __future__ import annotations

import pytest
from rich.segment import Segment
from textual.strip import Strip

from relaydesk.surfaces.console.widgets.line_view import LineView, PlainScrollBar
from relaydesk.surfaces.console.widgets.tones import Palette
from tests.surfaces.console.widgets.widget_app import WidgetApp, screen_lines


class Numbers(LineView):
    """Shows the number of each line, and as many as it is told."""

    DEFAULT_CSS = "Numbers { overflow-y: scroll; }"

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.forgotten = 0

    def line_content(self, y: int) -> int | None:
        return self.top + y if self.top + y < self.count else None

    def draw_line(self, content: object, palette: Palette) -> Strip:
        text = "" if content is None else str(content)
        return Strip([Segment(text.ljust(self.line_width), palette[""])], self.line_width)

    def laid_out(self) -> None:
        self.set_lines(self.count)

    def forget(self) -> None:
        self.forgotten += 1


async def test_a_line_is_drawn_when_it_shows_something_else() -> None:
    app = WidgetApp(Numbers(5))
    async with app.run_test(size=(10, 8)) as pilot:
        view = app.query_one(Numbers)
        await pilot.pause()
        before = view.lines_rendered
        view.repaint()
        await pilot.pause()
        assert view.lines_rendered == before
        view.count = 7
        view.set_lines(7)
        view.repaint()
        await pilot.pause()
        assert [line[:1] for line in screen_lines(app)] == [*"0123456", " "]


async def test_scrolling_draws_the_lines_that_differ() -> None:
    app = WidgetApp(Numbers(100))
    async with app.run_test(size=(10, 8)) as pilot:
        view = app.query_one(Numbers)
        await pilot.pause()
        before = view.lines_rendered
        view.scroll_to_line(3)
        await pilot.pause()
        assert screen_lines(app)[0].startswith("3 ")
        assert view.lines_rendered == before + 8
        view.scroll_to_line(3)
        await pilot.pause()
        assert view.lines_rendered == before + 8
        view.scroll_to_line(500)
        await pilot.pause()
        assert view.top == 92


@pytest.mark.parametrize("ascii", [False, True])
async def test_pictures_are_as_the_app_says(ascii: bool) -> None:
    app = WidgetApp(Numbers(100), ascii=ascii)
    async with app.run_test(size=(10, 8)) as pilot:
        view = app.query_one(Numbers)
        await pilot.pause()
        assert view.ascii is ascii
        assert (view.vertical_scrollbar.renderer is PlainScrollBar) is ascii
        view.scroll_to_line(30)
        await pilot.pause()
        bar = "".join(line[-1] for line in screen_lines(app))
        assert bar.isascii() or not ascii


async def test_what_was_drawn_is_forgotten_when_size_or_theme_change() -> None:
    app = WidgetApp(Numbers(3))
    async with app.run_test(size=(10, 4)) as pilot:
        view = app.query_one(Numbers)
        await pilot.pause()
        before = view.forgotten
        await pilot.resize_terminal(12, 5)
        await pilot.pause()
        assert view.forgotten == before + 1
        assert len(screen_lines(app)[0]) == 12
        app.theme = "textual-light"
        await pilot.pause()
        assert view.forgotten > before + 1
