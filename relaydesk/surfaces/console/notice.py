"""A pane's notice: over the whole body where there is nothing else to show, else one line above it."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from relaydesk.surfaces.console.pieces import MARKS, STYLES
from relaydesk.surfaces.console.states import PaneState


class NoticeBox(Widget):
    """Sentence and next action of a `PaneState`; nothing where there is nothing to say."""

    DEFAULT_CSS = """
    NoticeBox { height: auto; width: 1fr; padding: 0 1; display: none; }
    NoticeBox.-covers { height: 1fr; padding: 1 2; content-align: center middle; text-align: center; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state: PaneState | None = None

    def show(self, state: PaneState) -> None:
        """Say this from now on."""
        if state == self._state:
            return
        self._state = state
        self.display = state.notice is not None
        self.set_class(state.covers, "-covers")
        self.refresh(layout=True)

    def render(self) -> Content:
        state = self._state
        if state is None or state.notice is None:
            return Content()
        head = f"{MARKS[state.tone]} {state.notice.sentence}"
        if state.covers:
            return Content.assemble((head, STYLES[state.tone]), "\n\n", (state.notice.action, STYLES["dim"]))
        return Content.assemble((head, STYLES[state.tone]), "  ", (state.notice.action, STYLES["dim"]))
