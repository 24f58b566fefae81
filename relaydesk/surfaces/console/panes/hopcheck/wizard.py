"""What the wizard is made of: its widgets, where it stands, what it offers. `screen` has what keys do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from textual.app import ComposeResult

from relaydesk.core.view.hopcheck import HopCheckView, HopReportView
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console import chrome
from relaydesk.surfaces.console.action import Action, key_name
from relaydesk.surfaces.console.ask import Dialog
from relaydesk.surfaces.console.bindings import BY_ID
from relaydesk.surfaces.console.chrome import Offer
from relaydesk.surfaces.console.notice import NoticeBox
from relaydesk.surfaces.console.panes.hopcheck import result, standing
from relaydesk.surfaces.console.panes.hopcheck.actions import ACTIONS, HOPCHECK
from relaydesk.surfaces.console.panes.hopcheck.body import Body
from relaydesk.surfaces.console.panes.hopcheck.memory import Memory
from relaydesk.surfaces.console.panes.hopcheck.plan import Entry
from relaydesk.surfaces.console.panes.hopcheck.standing import Step
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.states import PaneState

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp

# What of the frame's and the lists' keys holds here too.
SHARED: Final = ("app.help", "app.quit", "view.theme", "list.copy")
# The copy key's place in the footer.
_COPY: Final = 68


class Wizard(Dialog[None]):
    """``step`` is the one that is shown, ``at`` the thing of the result that is looked at, ``came_from`` the
    step to which Escape leads back, ``said`` tone and sentence of what went wrong. ``memory`` outlives it.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__(id="hopcheck")
        self.memory = memory
        self.step: Step | None = None
        self.at = 0
        self.came_from: Step | None = None
        self.said: tuple[str, str] = ("", "")
        self.view: NodeView | None = None
        self.state = PaneState("loading")

    def compose(self) -> ComposeResult:
        yield PieceLine(id="strip")
        yield NoticeBox(id="notice")
        yield Body(id="steps")
        yield PieceLine(id="footer")

    def offers(self) -> tuple[Offer, ...]:
        """What the keys of this step do, with why not where that is so."""
        shown = standing.OFFERED[self.step or "layers"] if not self.state.covers else ()
        keymap = self.desk.session.keymap
        made = []
        for action in (*ACTIONS, *(BY_ID[each] for each in SHARED)):
            here = action.id in shown or action.where != HOPCHECK
            reason = self.reason(action)
            # What makes no sense at all now would only take the room of what does.
            weight = action.footer if here and not (reason and action.id in standing.HIDDEN) else 0
            keys = keymap.of(action)
            label = action.label
            if action.id == "hopcheck.run":
                keys = f"enter,{keys}" if self.step == "layers" else keys
                label = "run again" if self.step == "result" else label
            if action.id == "list.copy":
                weight = 0 if self.step == "layers" or self.state.covers else _COPY
            made.append(Offer(action, keys, label, reason, weight))
        return tuple(made)

    def reason(self, action: Action) -> str:
        """Why the action cannot be done now; empty where it can."""
        general = chrome.refusal(action, self.desk.feed.link, self.desk.access)
        if general or action.where != HOPCHECK:
            return general
        if self.state.covers and self.state.notice is not None:
            return self.state.notice.sentence.rstrip(".")
        check = self.check_view
        if check is None:
            return "nothing is known of the check yet"
        there = standing.There(
            self.step or "layers",
            running=check.running or self.memory.asked,
            report=check.report is not None,
            target=bool(self.memory.plan.target(check)),
            many=self.count > 1,
            entry=self.entry,
        )
        return standing.reason(action.id, there)

    # Drawing.

    def enter(self, step: Step, *, keep: bool = False) -> None:
        """Show a step. ``keep``: Escape leads back to where it was entered from."""
        self.step = step
        if not keep:
            self.came_from = None
        self.draw()
        self.body.take_keys(step)

    def draw(self) -> None:
        """All that is shown; lines that are the same cost nothing."""
        if not self.is_mounted or not self.query("#steps"):
            return
        step, check, width = self.step, self.check_view, self.app.size.width
        shown = None if self.state.covers or check is None else step
        self.query_one("#notice", NoticeBox).show(self.state)
        self.body.turn(shown)
        self.query_one("#strip", PieceLine).show(standing.steps(step, width))
        back = ("esc", "back" if self.came_from is not None else "close", "screen.back")
        self.query_one("#footer", PieceLine).show(chrome.footer(self.offers(), width, back))
        if shown is None or check is None:
            return
        now_ms, report = self.now_ms, check.report
        if shown == "layers":
            self.body.show_layers(check, self.memory, self.said, now_ms)
        elif shown == "probes":
            self.body.show_probes(check, self.memory, now_ms)
        elif report is not None:
            self.at = max(0, min(self.at, self.count - 1))
            key = key_name(self.desk.session.keymap.of(BY_ID["list.copy"]))
            self.body.show_result(report, self.memory, self.at, key, now_ms)

    def copied(self) -> tuple[str, str]:
        """What the copy key puts on the clipboard, and what that is called."""
        report, check = self.report, self.check_view
        if self.step == "result" and report is not None:
            return result.copied(report, self.at)
        if self.step == "layers" and check is not None:
            line = self.memory.plan.cli(check)
            return line, line[:80]
        return result.plain(self.body.probe)

    @property
    def desk(self) -> ConsoleApp:
        """The console."""
        return cast("ConsoleApp", self.app)

    @property
    def body(self) -> Body:
        """The steps."""
        return self.query_one(Body)

    @property
    def now_ms(self) -> int:
        """The node's time of day."""
        return self.desk.session.clock.wall_ms()

    @property
    def check_view(self) -> HopCheckView | None:
        """The section ``hopcheck``, where it is known."""
        return self.view.hopcheck.value if self.view is not None else None

    @property
    def report(self) -> HopReportView | None:
        """The last check that came to an end."""
        return self.check_view.report if self.check_view is not None else None

    @property
    def count(self) -> int:
        """How many things its result has to look at."""
        return result.count(self.report) if self.report is not None else 0

    @property
    def entry(self) -> Entry | None:
        """The layer under the cursor."""
        check = self.check_view
        found = self.memory.plan.entries(check) if check is not None and self.is_mounted else ()
        return next((each for each in found if each.name == self.body.layer_name), None)
