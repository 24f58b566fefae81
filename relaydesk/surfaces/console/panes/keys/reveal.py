"""A card with a secret: shown until it is closed, kept nowhere."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from relaydesk.surfaces.console.ask import Dialog
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.pieces import MARKS, STYLES, Piece


class Reveal(Dialog[None]):
    """The secret leaves with the card. One that is shown ``once`` is closed by Escape alone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", show=False),
        Binding("escape", "leave", show=False),
        Binding("q,enter", "hurry", show=False),
    ]

    def __init__(self, title: str, secret: str, note: str, *, once: bool = False) -> None:
        super().__init__()
        self._once = once
        self._title = title
        self._secret = secret
        self._note = note

    def compose(self) -> ComposeResult:
        with Vertical(classes="card"):
            yield Static(Content.styled(self._title, "bold"), classes="title")
            yield Static(Content(self._secret), id="secret")
            tone = STYLES["warn"] if self._once else ""
            mark = f"{MARKS['warn']} " if self._once else ""
            yield Static(Content.assemble((f"{mark}{self._note}", tone)), classes="text")
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
        self.app.clear_notifications()
        self.app.notify("Copied the key", markup=False, timeout=3)

    def action_hurry(self) -> None:
        """Close, unless the secret would be lost by a key pressed too early."""
        if not self._once:
            self.dismiss(None)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
