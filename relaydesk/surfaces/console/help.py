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
from textual.widgets import Markdown, Static

from relaydesk.surfaces.console.action import key_name
from relaydesk.surfaces.console.bindings import FIXED
from relaydesk.surfaces.console.chrome import Offer
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.pieces import STYLES, Piece

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
                yield Markdown(help_text(self._pane_id), open_links=False)
                yield Static(keys_content(self._offers), classes="keys")
            yield PieceLine(id="keys")

    def on_mount(self) -> None:
        self.query_one("#page").focus()
        self.query_one("#keys", PieceLine).show(
            (Piece("esc", "accent", "screen.leave"), Piece(" close", "dim", "screen.leave"))
        )

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

    def action_move(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one("#page").scroll_relative(y=lines, animate=False)


def help_text(pane_id: str) -> str:
    """The page of a pane, as it ships with it."""
    return (files(_HOME) / pane_id / "help.md").read_text(encoding="utf-8")


def keys_content(offers: Sequence[Offer]) -> Content:
    """Keys, what they do, and the command line that does the same."""
    rows = [(_keys(offer.keys), _does(offer), offer.action.cli) for offer in offers if offer.keys]
    rows += [(keys, does, "") for keys, does in FIXED]
    width = max(len(keys) for keys, _, _ in rows if len(keys) <= 12)
    parts: list[str | tuple[str, str]] = [("Keys\n", "bold"), "\n"]
    for keys, does, cli in rows:
        parts += [(keys.ljust(width), STYLES["accent"]), "  ", does]
        if cli:
            parts += ["\n", " " * (width + 2), (cli, STYLES["dim"])]
        parts.append("\n")
    return Content.assemble(*parts)


def _keys(keys: str) -> str:
    return key_name(keys)


def _does(offer: Offer) -> str:
    lost = f"; asks first: loses {offer.action.danger}" if offer.action.danger else ""
    return f"{offer.action.help}{lost}" + (f" (not now: {offer.reason})" if offer.reason else "")
