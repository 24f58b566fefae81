"""An app around one widget, and what its screen says."""

from __future__ import annotations

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.widget import Widget


class WidgetApp(App[None]):
    """Shows one widget, on all of the screen unless its sheet says less."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, widget: Widget, *, ascii: bool = False) -> None:
        super().__init__()
        self._widget = widget
        self.ascii = ascii

    def compose(self) -> ComposeResult:
        """The widget alone."""
        yield self._widget


def screen_segments(app: App[None]) -> list[list[Segment]]:
    """What each line of the screen is drawn from, filters applied."""
    return [list(strip) for strip in app.screen._compositor.render_strips(app.size)]


def screen_lines(app: App[None]) -> list[str]:
    """The text of each line of the screen."""
    return ["".join(segment.text for segment in line) for line in screen_segments(app)]
