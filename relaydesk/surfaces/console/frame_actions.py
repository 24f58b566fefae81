"""What the frame's own rows of the table of actions do, whatever pane is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.command import CommandPalette

from relaydesk.surfaces.console.filter_bar import FilterBar
from relaydesk.surfaces.console.help import Help
from relaydesk.surfaces.console.leaving import ends_node, leave
from relaydesk.surfaces.console.looks import Looks
from relaydesk.surfaces.console.palette import Actions

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp


class FrameActions:
    """`ConsoleApp.action_run` finds the method by the action's id.

    ``asked`` is what the sentence of a terminal too small asks, since there is no room for a card.
    """

    def __init__(self, app: ConsoleApp, looks: Looks, filter_bar: FilterBar) -> None:
        self._app = app
        self._looks = looks
        self._filter_bar = filter_bar
        self.asked = ""

    def do_filter(self) -> None:
        """Type a filter."""
        pane = self._app.pane
        if pane is not None and not pane.state.covers:
            self._filter_bar.open()

    def do_copy(self) -> None:
        """To the clipboard by OSC 52, which works through ssh and tmux where the terminal allows it."""
        pane = self._app.pane
        text = pane.copied() if pane is not None else ""
        if text:
            self._app.copy_to_clipboard(text)
        self._app.say(f"Copied: {text[:80]}" if text else "Nothing is selected")

    def do_pause(self) -> None:
        """Stand still, or go on."""
        self._app.feed.pause(not self._app.feed.paused)

    def do_faster(self) -> None:
        """The next rate."""
        self._looks.next_rate(1)

    def do_slower(self) -> None:
        """The rate before."""
        self._looks.next_rate(-1)

    def do_retry(self) -> None:
        """Try to reach the node now."""
        self._app.feed.retry()

    def do_theme(self) -> None:
        """The next theme."""
        self._looks.next_theme()

    def do_help(self) -> None:
        """The pane's page."""
        self._app.push_screen(Help(self._app.current, self._app.offers()))

    def do_palette(self) -> None:
        """Find an action by name."""
        self._app.push_screen(CommandPalette(providers=[Actions], placeholder="What to do?"))

    def do_quit(self) -> None:
        """Leave; an embedded console asks, since its node ends with it."""
        if self._app.tiny and not self.asked and ends_node(self._app):
            self.asked = "The node inside stops with this console: q once more stops it."
        else:
            leave(self._app, at_once=self._app.tiny)
