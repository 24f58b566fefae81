"""One line of pieces as a widget: drawn whole, clickable piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.widget import Widget

from relaydesk.surfaces.console.pieces import Piece, action_at, content


class PieceLine(Widget):
    """Shows pieces; a click runs the action of the one it hits."""

    DEFAULT_CSS = "PieceLine { height: 1; width: 1fr; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.pieces: tuple[Piece, ...] = ()

    def show(self, pieces: Sequence[Piece]) -> None:
        """Draw these from now on; the same ones again cost nothing."""
        fresh = tuple(pieces)
        if fresh != self.pieces:
            self.pieces = fresh
            self.refresh()

    def render(self) -> Content:
        return content(self.pieces)

    async def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        action = action_at(self.pieces, offset.x) if offset is not None else ""
        if action:
            event.stop()
            await self.run_action(action)
