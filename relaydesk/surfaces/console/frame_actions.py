"""What the frame's own rows of the table of actions do, whatever pane is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.command import CommandPalette

from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.filter_bar import FilterBar
from relaydesk.surfaces.console.help import Help
from relaydesk.surfaces.console.leaving import ends_node, leave
from relaydesk.surfaces.console.looks import Looks
from relaydesk.surfaces.console.palette import Actions
from relaydesk.surfaces.console.panes.hopcheck.memory import Memory
from relaydesk.surfaces.console.panes.hopcheck.result import told
from relaydesk.surfaces.console.panes.hopcheck.screen import HopCheck

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
        self._hop_checks = Memory()

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

    def do_check(self) -> None:
        """The wizard that finds who takes the marker away."""
        self._app.push_screen(HopCheck(self._hop_checks))

    def follow(self, view: NodeView) -> None:
        """Say how a check has ended that was started here, where its wizard was closed meanwhile."""
        check, memory = view.hopcheck.value, self._hop_checks
        opened = any(isinstance(each, HopCheck) for each in self._app.screen_stack)
        if opened or check is None or not memory.job:
            return
        news = memory.take(check, view.jobs.value, self._app.session.clock.wall_ms())
        if news.what == "ended" and check.report is not None:
            self._app.say(told(check.report), "information" if check.report.ok else "warning", 12)

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
