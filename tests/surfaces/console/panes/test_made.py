"""A presenter as a widget."""

from __future__ import annotations

from textual.app import App, ComposeResult

from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.widgets.spans import Line, Span


class _App(App[None]):
    ascii = True

    def compose(self) -> ComposeResult:
        yield Made()


def _make(width: int, height: int, ascii: bool) -> tuple[Line, ...]:
    return ((Span(f"{width} {height} {ascii}"),),)


async def test_lines_are_made_for_the_size_and_made_anew_for_another() -> None:
    app = _App()
    async with app.run_test(size=(40, 10)) as pilot:
        made = app.query_one(Made)
        assert made.lines == ()
        made.show(_make)
        await pilot.pause()
        assert made.lines == ((Span("40 1 True"),),)
        assert made.size.height == 1
        await pilot.resize_terminal(30, 10)
        await pilot.pause()
        assert made.lines == ((Span("30 1 True"),),)
        drawn = made.lines_rendered
        made.show(_make)
        await pilot.pause()
        assert made.lines_rendered == drawn
        made.dimmed = True
        await pilot.pause()
        assert made.lines == ((Span("30 1 True", "dim"),),)
        made.show(None)
        await pilot.pause()
        assert made.lines == ()
