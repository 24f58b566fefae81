"""The console's frame: it knows a node only as a `NodeApi`, and a pane only as a `Pane`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final, Literal

from textual import events, on
from textual.app import App, ComposeResult
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Size
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from relaydesk.core.commands import Access
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console import chrome, themes
from relaydesk.surfaces.console.action import ANYWHERE, Action
from relaydesk.surfaces.console.ascii import AsciiFilter
from relaydesk.surfaces.console.bindings import BY_ID, active, bindings_for
from relaydesk.surfaces.console.chrome import Offer
from relaydesk.surfaces.console.data import Feed, Link
from relaydesk.surfaces.console.dismissed import Dismissed
from relaydesk.surfaces.console.filter_bar import FilterBar
from relaydesk.surfaces.console.frame import Frame
from relaydesk.surfaces.console.frame_actions import FrameActions
from relaydesk.surfaces.console.looks import Looks
from relaydesk.surfaces.console.pane import Pane
from relaydesk.surfaces.console.panes.hopcheck.actions import HOPCHECK
from relaydesk.surfaces.console.panes.hopcheck.screen import HopCheck
from relaydesk.surfaces.console.registry import PANES, pane_spec
from relaydesk.surfaces.console.sending import Sender
from relaydesk.surfaces.console.session import Session
from relaydesk.surfaces.console.widgets.live_table import LiveTable

_log: Final = logging.getLogger(__name__)
_HERE: Final = Path(__file__).parent
_FOLDERS: Final = (*(spec.id for spec in PANES), HOPCHECK)
_STYLES: Final = tuple(_HERE / "panes" / name / "pane.tcss" for name in _FOLDERS)

Severity = Literal["information", "warning", "error"]


class ConsoleApp(App[None], inherit_bindings=False):
    """Strip, tabs, panes, footer; one feed for all of them."""

    CSS_PATH = [_HERE / "console.tcss", *(path for path in _STYLES if path.exists())]
    BINDINGS = [*bindings_for(ANYWHERE), ("escape", "back")]
    ENABLE_COMMAND_PALETTE = False
    COMMAND_PALETTE_BINDING = ""
    HORIZONTAL_BREAKPOINTS = chrome.WIDTHS
    VERTICAL_BREAKPOINTS = chrome.HEIGHTS
    TITLE = "relaydesk"

    def __init__(self, session: Session) -> None:
        self.ascii = session.ascii
        self._ascii_filter = AsciiFilter(session.ascii)
        # A terminal that wants no colour gets its own ink and ground, not greys of ours.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.session = session
        self.animation_level = "none"
        for theme in themes.all_themes():
            self.register_theme(theme)
        self.set_keymap(dict(session.keymap.keys))
        self.feed = Feed(session.connect, session.clock, self._on_view, self._on_link)
        self.stopping = False
        self._sender = Sender(self)
        self._frame = Frame()
        self._frame_actions = FrameActions(
            self, Looks(self, session.prefs, session.keep), self._frame.filter_bar
        )
        self._too_small = Static(id="too-small", markup=False)
        self._dismissed = Dismissed()
        self._panes: dict[str, Pane] = {}
        self.current = PANES[0].id
        self._filters_of: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        yield self._too_small
        yield self._frame

    async def on_mount(self) -> None:
        await self.show_pane(self.current)
        self.run_worker(self.feed.run(), name="watch", group="watch", exit_on_error=False)
        self.set_interval(1, self._tick)
        problems = [each for each in (*self.session.keymap.problems, self.session.prefs.problem) if each]
        if problems:
            self.say("\n".join(problems), "warning", 10)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Any theme of Textual's can be used: what it does not name is ours."""
        return dict(themes.own(themes.DARK).variables)

    def get_line_filters(self) -> list[LineFilter]:
        # Our colours are true ones already; the terminal's own, in its theme, are to stay what they are.
        kept = [each for each in super().get_line_filters() if not isinstance(each, ANSIToTruecolor)]
        return [*kept, *([self._ascii_filter] if self.ascii else [])]

    # What panes and the sender use.

    @property
    def pane(self) -> Pane | None:
        """The pane that is shown; none while the console is taken down and its widgets are going."""
        return self._panes.get(self.current) if self.is_running else None

    @property
    def access(self) -> Access:
        """What this console may do to the node."""
        if self.session.read_only:
            return Access.READ
        return self.feed.node.access if self.feed.node is not None else Access.WRITE

    def say(self, message: str, severity: Severity = "information", timeout: float = 4) -> None:
        """A toast in place of those before; good news leaves a warning standing. The text is never markup."""
        for each in tuple(self._notifications):
            if severity != "information" or each.severity == "information":
                self._unnotify(each)
        self.notify(message, severity=severity, timeout=timeout, markup=False)

    def offers(self) -> tuple[Offer, ...]:
        """Every action of this moment, with why it cannot be done where that is so."""
        pane = self.pane
        return tuple(
            Offer(
                action,
                self.session.keymap.of(action),
                self._label(action),
                self.reason(action),
                pane.weight(action)
                if pane is not None and action.where in (self.current, ANYWHERE)
                else action.footer,
            )
            for action in active(self.current, pane is None or pane.HAS_LIST)
        )

    def reason(self, action: Action) -> str:
        """Why the action cannot be done now; empty where it can."""
        general = chrome.refusal(action, self.feed.link, self.access)
        if general or self.pane is None or action.where == ANYWHERE:
            return general
        return self.pane.reason(action)

    async def show_pane(self, pane_id: str) -> None:
        """Put a pane in front; it is made when it is first looked at."""
        before, self.current = self.pane, pane_id
        pane = self._panes.get(pane_id)
        if pane is None:
            pane = pane_spec(pane_id).make()
            await self._frame.body.mount(pane)
            self._panes[pane_id] = pane
        if before is not None and before is not pane:
            before.display = False
        pane.display = True
        pane.take(self._told(self.feed.shown), self.feed.link)
        self._frame.filter_bar.load(self._filters_of.get(pane_id, ""))
        pane.focus_default()
        self._draw()

    # Keys and clicks.

    def action_run(self, action_id: str) -> None:
        """Do what a row of the table says, or say why not."""
        action = BY_ID[action_id]
        reason = self.reason(action)
        if self.tiny and action.id != "app.quit":
            return
        if isinstance(self.screen, HopCheck) and self.screen.do(action):
            return
        if self.pane is not None and self.pane.settle(action):
            self._draw()
        elif reason:
            self.say(f"{action.label}: {reason}", "warning")
        elif action.command is not None and self.pane is not None:
            work = self._sender.send(action, self.pane)
            self.run_worker(work, name=action.id, group="commands", exit_on_error=False)
        elif action.area == "pane":
            self.call_later(self.show_pane, action_id.partition(".")[2])
        else:
            method = getattr(self.pane, action.method, None) or getattr(self._frame_actions, action.method)
            method()
            self._draw()

    async def action_back(self) -> None:
        """Escape: close what lies over the list, then what limits it, then what failed; back to the list."""
        pane = self.pane
        self.clear_notifications()
        if pane is None or self.tiny or pane.close_detail():
            pass
        elif self._frame.filter_bar.text:
            self._frame.filter_bar.action_clear()
        elif pane.table is not None and self.focused is not pane.table and not pane.state.covers:
            pane.focus_default()
        elif not pane.clear_limits():
            self.dismiss_failed()
        self._draw()

    def dismiss_failed(self) -> bool:
        """Tell no more of jobs that failed; False where none is told of."""
        gone = self._dismissed.dismiss(self.feed.shown, self.session.clock.wall_ms())
        if gone and self.pane is not None:
            self.pane.take(self._told(self.feed.shown), self.feed.link)
        return gone

    def action_open(self) -> None:
        """What Enter does, for a click on its word."""
        if self.pane is not None:
            self.pane.open_detail()

    # What comes in.

    def _on_view(self, view: NodeView, changed: frozenset[str]) -> None:
        if "jobs" in changed:
            self._sender.follow(view)
        if "hopcheck" in changed:
            self._frame_actions.follow(view)
        for wizard in self._wizards():
            wizard.take(view, self.feed.link)
        pane = self.pane
        if pane is not None and (changed & set(pane.spec.sections) or pane.state.kind != "ready"):
            pane.take(self._told(view), self.feed.link)
        self._draw()

    def _on_link(self, link: Link) -> None:
        if self.pane is not None:
            self.pane.take(self._told(self.feed.shown), link)
        for wizard in self._wizards():
            wizard.take(self.feed.shown, link)
        self._draw()

    def _tick(self) -> None:
        if not self.feed.focused:
            return
        if not self.feed.paused and self.pane is not None:
            told = self._told(self.feed.shown)
            if self.pane.view is not None and told.jobs != self.pane.view.jobs:
                self.pane.take(told, self.feed.link)
            self.pane.tick(self.session.clock.wall_ms())
        for wizard in self._wizards() if not self.feed.paused else ():
            wizard.tick()
        self._draw()

    def _draw(self, size: Size | None = None) -> None:
        """Strip, tabs and footer; lines that are the same cost nothing."""
        width, height = size or self.size
        now_ms, offers = self.session.clock.wall_ms(), self.offers()
        hint = self.pane.hint if self.pane is not None else ("", "", "")
        self._frame.draw(self.feed, self.session.mode, self.current, offers, hint, now_ms, width)
        sentence = chrome.too_small(width, height, pane_spec(self.current).cli, self._frame_actions.asked)
        if sentence != self._too_small.content:
            self._too_small.update(sentence)

    def _label(self, action: Action) -> str:
        return "go on" if action.id == "view.pause" and self.feed.paused else action.label

    def _told(self, view: NodeView) -> NodeView:
        return self._dismissed.without(view, self.session.clock.wall_ms())

    def _wizards(self) -> tuple[HopCheck, ...]:
        screens = self.screen_stack if self.is_running else ()
        return tuple(each for each in screens if isinstance(each, HopCheck) and each.is_mounted)

    @property
    def tiny(self) -> bool:
        """Whether the terminal is too small for anything but the sentence that says so."""
        return chrome.tiny(*self.size)

    def on_resize(self, event: events.Resize) -> None:
        self._frame_actions.asked = ""
        self._draw(event.size)
        if not chrome.tiny(*event.size) and self.pane is not None and self.screen.focused is None:
            self.pane.focus_default()

    def on_app_focus(self) -> None:
        self.feed.focus(True)

    def on_app_blur(self) -> None:
        self.feed.focus(False)

    @on(LiveTable.RowSelected)
    def _opened(self) -> None:
        self._draw()

    @on(FilterBar.Changed)
    def _filtered(self, event: FilterBar.Changed) -> None:
        self._filters_of[self.current] = event.text
        if self.pane is not None:
            self.pane.set_filter(event.text)

    @on(FilterBar.Left)
    def _left_filter(self) -> None:
        if self.pane is not None:
            self.pane.focus_default()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            _log.error("the console's worker %s failed", event.worker.name, exc_info=event.worker.error)
            self.say(f"The console's {event.worker.name} failed: see the log", "error", 12)

    def _fatal_error(self) -> None:
        # Textual would print every local variable, secrets among them; `run` says where the trace went.
        self._close_messages_no_wait()

    @property
    def crash(self) -> Exception | None:
        """What ended the console, None where nothing did."""
        return self._exception
