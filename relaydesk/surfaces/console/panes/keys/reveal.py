"""A card with a secret: shown until it is closed, kept nowhere."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.pieces import Piece


class Reveal(ModalScreen[None]):
    """The secret leaves with the card."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", show=False),
        Binding("escape,q,enter", "leave", show=False),
    ]

    def __init__(self, title: str, secret: str, note: str) -> None:
        super().__init__()
        self._title = title
        self._secret = secret
        self._note = note

    def compose(self) -> ComposeResult:
        with Vertical(classes="card"):
            yield Static(Content.styled(self._title, "bold"), classes="title")
            yield Static(Content(self._secret), id="secret")
            yield Static(Content(self._note), classes="text")
            yield PieceLine(id="keys")

    def on_mount(self) -> None:
        keys = (
            Piece("c", "accent", "screen.copy"),
            Piece(" copy", "", "screen.copy"),
            Piece("    "),
            Piece("esc", "accent", "screen.leave"),
            Piece(" close", "", "screen.leave"),
        )
        self.query_one(PieceLine).show(keys)

    def action_copy(self) -> None:
        """To the clipboard, where the terminal allows it; the toast does not repeat it."""
        self.app.copy_to_clipboard(self._secret)
        self.app.notify("Copied the key", markup=False, timeout=3)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
