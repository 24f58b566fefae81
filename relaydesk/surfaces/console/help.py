"""Help: the pane's own page and the keys it has, out of the table of actions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from relaydesk.surfaces.console.action import key_name
from relaydesk.surfaces.console.bindings import FIXED
from relaydesk.surfaces.console.chrome import Offer
from relaydesk.surfaces.console.markdown import Line, lines
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.pieces import Piece, content

_HOME = "relaydesk.surfaces.console.panes"


class Help(ModalScreen[None]):
    """A page over the pane; any of the keys that opened it, or Escape, closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "leave", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def __init__(self, pane_id: str, offers: Sequence[Offer]) -> None:
        super().__init__()
        self._pane_id = pane_id
        self._offers = tuple(offers)

    def compose(self) -> ComposeResult:
        with Vertical(classes="card -page"):
            with VerticalScroll(id="page"):
                yield Static(id="text", markup=False)
            yield PieceLine(id="keys")

    def on_mount(self) -> None:
        self.query_one("#page").focus()
        leave = "screen.leave"
        self.query_one("#keys", PieceLine).show(
            (Piece("esc", "accent", leave), Piece(" close", "dim", leave))
        )

    def on_resize(self) -> None:
        # The page's own width is known only after the next layout; the card's rules give it already.
        width = min(92, self.size.width * 94 // 100) - 6
        page = [*lines(help_text(self._pane_id), width), (), *key_lines(self._offers)]
        self.query_one("#text", Static).update(Content("\n").join(content(line) for line in page))

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

    def action_move(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one("#page").scroll_relative(y=lines, animate=False)


def help_text(pane_id: str) -> str:
    """The page of a pane, as it ships with it."""
    return (files(_HOME) / pane_id / "help.md").read_text(encoding="utf-8")


def key_lines(offers: Sequence[Offer]) -> list[Line]:
    """Keys, what they do, and the command line that does the same."""
    rows = [(key_name(offer.keys), _does(offer), offer.action.cli) for offer in offers if offer.keys]
    rows += [(keys, does, "") for keys, does in FIXED]
    column = 9
    made: list[Line] = [(Piece("Keys", "strong"),), ()]
    for keys, does, cli in rows:
        made.append((Piece(keys.ljust(column), "accent"), Piece("  " + does)))
        if cli:
            made.append((Piece(" " * (column + 2)), Piece(cli, "dim")))
    return made


def _does(offer: Offer) -> str:
    lost = f"; asks first: loses {offer.action.danger}" if offer.action.danger else ""
    return f"{offer.action.help}{lost}" + (f" (not now: {offer.reason})" if offer.reason else "")
