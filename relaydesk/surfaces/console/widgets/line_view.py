"""The base of all that is drawn line by line.

A subclass says what each screen line shows, as a value (`line_content`), and how such a value is drawn
(`draw_line`). After any change it calls `repaint`: lines whose value is another than the screen has are
drawn, and no others, whether rows, the cursor or the scroll position changed.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip

from relaydesk.surfaces.console.widgets.tones import Palette, palette_of


class PlainScrollBar(ScrollBarRender):
    """A scroll bar of blanks alone, for terminals without block characters."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8


class LineView(ScrollView):
    """A widget of lines. ``lines_rendered`` counts the lines drawn for the screen since it was made.

    ``ascii`` asks for pictures made of ASCII; None does as the app's ``ascii`` says. Text stays as it is:
    what there is to replace in it, the app replaces in all that it draws.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    LineView {
        overflow-x: hidden;
        overflow-y: hidden;
        scrollbar-size-vertical: 1;
    }
    """

    def __init__(
        self,
        *,
        ascii: bool | None = None,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.lines_rendered = 0
        self._ascii = ascii
        self._shown: list[object] = []
        self._palette: Palette | None = None

    # What a subclass gives.

    @abstractmethod
    def line_content(self, y: int) -> object:
        """What screen line ``y`` shows, comparable by value."""

    @abstractmethod
    def draw_line(self, content: object, palette: Palette) -> Strip:
        """Such a value as a strip of the widget's width."""

    def laid_out(self) -> None:
        """The size is another one: place things anew. Everything is drawn afterwards."""

    def forget(self) -> None:
        """Colours, size or characters are others: drop what was drawn."""

    # What it gets.

    @property
    def ascii(self) -> bool:
        """Whether pictures are made of ASCII."""
        if self._ascii is None:
            return self.is_attached and bool(getattr(self.app, "ascii", False))
        return self._ascii

    @ascii.setter
    def ascii(self, ascii: bool | None) -> None:
        if ascii != self._ascii:
            self._ascii = ascii
            self.laid_out()
            self.redraw()

    @property
    def line_width(self) -> int:
        """Cells a line has, without those of the scroll bar."""
        return self.scrollable_content_region.width

    @property
    def palette(self) -> Palette:
        """The theme's styles for this widget."""
        if self._palette is None:
            self._palette = palette_of(self)
        return self._palette

    @property
    def top(self) -> int:
        """The first line of the content that is on the screen."""
        return self.scroll_offset.y

    def repaint(self) -> None:
        """Draw the lines that show something else than they should."""
        lines = [self.line_content(y) for y in range(self.size.height)]
        if len(lines) == len(self._shown):
            width = self.line_width
            changed = [
                Region(0, y, width, 1)
                for y, (old, new) in enumerate(zip(self._shown, lines, strict=True))
                if old is not new and old != new
            ]
            if changed:
                self.refresh(*changed)
        else:
            self.refresh()
        self._shown = lines

    def redraw(self) -> None:
        """Draw every line anew."""
        self.forget()
        self.refresh()

    def set_lines(self, count: int) -> None:
        """The content has this many lines."""
        size = Size(self.line_width, count)
        if size == self.virtual_size:
            return
        # Set the usual way it lays out the whole screen, at every row that comes or goes.
        changed = count != self.virtual_size.height
        self.set_reactive(LineView.virtual_size, size)
        self._scroll_update(size)
        if changed and self.styles.is_auto_height:
            self.refresh(layout=True)

    def scroll_to_line(self, top: int) -> None:
        """Make this the first line shown, as far as there are lines to fill the screen with."""
        if top != self.top:
            self.scroll_to(y=top, animate=False, force=True)

    # Textual's side.

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        self.lines_rendered += 1
        return self.draw_line(self.line_content(y), self.palette)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling draws what differs, not the whole widget."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            self.repaint()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Focus may change how lines look."""
        super().watch_has_focus(has_focus)
        self.repaint()

    def on_mount(self) -> None:
        """The scroll bar is a picture too."""
        super().on_mount()  # type: ignore[no-untyped-call]
        if self.ascii:
            self.vertical_scrollbar.renderer = PlainScrollBar  # type: ignore[misc]  # for one bar, as documented

    def on_resize(self, _: events.Resize) -> None:
        """Place things anew and draw all of it: Textual may have drawn lines of the old size at the new."""
        self.forget()
        self.laid_out()
        self._shown = []
        self.repaint()

    def notify_style_update(self) -> None:
        """A sheet was applied. The new colours are known once all of it is."""
        super().notify_style_update()
        if self._palette is not None:
            self.call_later(self._check_palette)

    def _check_palette(self) -> None:
        palette = palette_of(self)
        if palette != self._palette:
            self._palette = palette
            self.redraw()
