from __future__ import annotations

from textual.containers import Vertical

from relaydesk.surfaces.console.widgets.lines import Lines
from relaydesk.surfaces.console.widgets.spans import Line, Span
from tests.surfaces.console.widgets.widget_app import WidgetApp, screen_lines, screen_segments

HOSTILE = "[bold][@click=app.quit]x[/] \x1b[31m\x1b]52;c;aGk=\x07 \u202eabc"


async def test_lines_are_as_high_as_they_are_many() -> None:
    below = Lines([(Span("below"),)])
    lines = Lines([(Span("one", "ok"), Span(" two")), (Span("漢字"),)])
    app = WidgetApp(Vertical(lines, below))
    async with app.run_test(size=(8, 5)) as pilot:
        assert screen_lines(app) == ["one two ", "漢字    ", "below   ", " " * 8, " " * 8]
        lines.lines = [(Span("a"),)]
        await pilot.pause()
        assert screen_lines(app)[:2] == ["a       ", "below   "]
        lines.lines = [(Span(name),) for name in "abcd"]
        await pilot.pause()
        assert [line.strip() for line in screen_lines(app)] == [*"abcd", "below"]


async def test_only_lines_that_changed_are_drawn() -> None:
    lines = Lines([(Span(str(at)),) for at in range(10)])
    app = WidgetApp(lines)
    async with app.run_test(size=(20, 12)) as pilot:
        await pilot.pause()
        before = lines.lines_rendered
        lines.lines = [(Span(str(at)),) for at in range(10)]
        await pilot.pause()
        assert lines.lines_rendered == before
        lines.lines = [(Span(str(at if at != 4 else 99)),) for at in range(10)]
        await pilot.pause()
        assert lines.lines_rendered == before + 1
        assert screen_lines(app)[4].strip() == "99"


async def test_tones_follow_the_theme() -> None:
    lines = Lines([(Span("  warn", "warn"),)])
    app = WidgetApp(lines)
    async with app.run_test(size=(8, 2)) as pilot:
        colors = []
        for theme in ("textual-dark", "textual-light"):
            app.theme = theme
            await pilot.pause()
            segment = next(segment for segment in screen_segments(app)[0] if segment.text == "warn")
            assert segment.style is not None
            colors.append(segment.style.color)
            blank = screen_segments(app)[0][0]
            assert blank.style is not None and segment.style.bgcolor == blank.style.bgcolor
        assert colors[0] != colors[1]


async def test_markup_and_escapes_are_only_text() -> None:
    app = WidgetApp(Lines([(Span(HOSTILE), Span("a" * 10_000))]))
    async with app.run_test(size=(60, 2)) as pilot:
        line = screen_lines(app)[0]
        assert line.startswith("[bold][@click=app.quit]x[/] [31m]52;c;aGk= abcaaa")
        assert line.endswith("a…")
        await pilot.click(offset=(10, 0))
        assert app.is_running


async def test_long_texts_scroll_where_the_sheet_lets_them() -> None:
    lines = Lines([(Span(f"line {at}"),) for at in range(30)])
    lines.styles.height = 4
    lines.styles.overflow_y = "auto"
    app = WidgetApp(lines)
    async with app.run_test(size=(12, 4)) as pilot:
        await pilot.pause()
        assert lines.line_width == 11
        lines.scroll_to_line(7)
        await pilot.pause()
        assert [line[:11].strip() for line in screen_lines(app)] == [f"line {at}" for at in range(7, 11)]


class Counted(Lines):
    """As many lines as it is told, each as wide as the widget says."""

    count = 0

    def lines_for(self, width: int, height: int) -> tuple[Line, ...]:
        return tuple((Span(f"{at}:{width}"),) for at in range(self.count))


async def test_lines_made_for_a_size_come_from_nothing_and_go_again() -> None:
    lines = Counted()
    app = WidgetApp(Vertical(lines, Lines([(Span("below"),)])))
    async with app.run_test(size=(20, 5)) as pilot:
        for count in (0, 3, 1, 0, 2):
            lines.count = count
            lines.update()
            await pilot.pause()
            shown = [line.strip() for line in screen_lines(app)]
            assert shown[: count + 1] == [*(f"{at}:20" for at in range(count)), "below"]
        await pilot.resize_terminal(30, 5)
        await pilot.pause()
        assert screen_lines(app)[0].strip() == "0:30"
