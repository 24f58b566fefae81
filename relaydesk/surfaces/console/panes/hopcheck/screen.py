"""The wizard "Check my X-Zs-Relay-Hop passthrough": layers, probes, result, by keyboard alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from relaydesk.core.commands import CancelJob, Command
from relaydesk.core.errors import FaultError
from relaydesk.core.view.hopcheck import HopCheckView, HopReportView
from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import FaultView
from relaydesk.surfaces.console import chrome
from relaydesk.surfaces.console.action import ANYWHERE, LIST, Action, key_name
from relaydesk.surfaces.console.ask import Dialog
from relaydesk.surfaces.console.bindings import BY_ID, bindings_for
from relaydesk.surfaces.console.chrome import Offer
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.help import Help
from relaydesk.surfaces.console.notice import NoticeBox
from relaydesk.surfaces.console.panes.hopcheck import form, result, standing
from relaydesk.surfaces.console.panes.hopcheck.actions import ACTIONS, HOPCHECK
from relaydesk.surfaces.console.panes.hopcheck.body import Body
from relaydesk.surfaces.console.panes.hopcheck.memory import Memory
from relaydesk.surfaces.console.panes.hopcheck.plan import PUBLIC, Entry
from relaydesk.surfaces.console.panes.hopcheck.standing import Step
from relaydesk.surfaces.console.panes.prose import sentence
from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.states import PaneState
from relaydesk.surfaces.console.widgets.live_table import LiveTable

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp

# What of the frame's and the lists' keys holds here too.
_SHARED: Final = ("app.help", "app.quit", "view.theme", "list.copy")
_FAULT_S: Final = 12.0


class HopCheck(Dialog[None]):
    """Three steps over the pane that it was opened from. ``memory`` outlives it.

    The frame hands it every view (`take`), every second (`tick`) and every action that a key or a click asks
    for (`do`).
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_for(HOPCHECK),
        *(each for each in bindings_for(ANYWHERE, LIST) if cast("Binding", each).id in _SHARED),
        Binding("escape", "back", show=False),
        Binding("tab,right", "step(1)", show=False),
        Binding("shift+tab,left", "step(-1)", show=False),
    ]

    def __init__(self, memory: Memory) -> None:
        super().__init__(id="hopcheck")
        self.memory = memory
        self.step: Step | None = None
        self.at = 0
        self._from: Step | None = None
        self._said: tuple[str, str] = ("", "")
        self._view: NodeView | None = None
        self._state = PaneState("loading")

    def compose(self) -> ComposeResult:
        yield PieceLine(id="strip")
        yield NoticeBox(id="notice")
        yield Body(id="steps")
        yield PieceLine(id="footer")

    def on_mount(self) -> None:
        self.take(self._desk.feed.shown, self._desk.feed.link)

    # What the frame hands over.

    def take(self, view: NodeView, link: Link) -> None:
        """A new view or a new link."""
        self._view = view
        self._state = standing.state(view, link)
        if link.state == "lost":
            self.memory.forget()
        check = view.hopcheck.value
        if check is not None:
            news = self.memory.take(check, view.jobs.value, self._now_ms)
            if self.step is None:
                self._enter(standing.first_step(check))
            elif self.step == "probes" and news.what == "ended":
                self.at = 0
                self._enter("result")
            elif news.what == "broken off":
                self._broken_off(news.fault)
        self._draw()

    def tick(self) -> None:
        """Once a second: for times that run."""
        if self._check is not None and self._check.running:
            self._draw()

    def do(self, action: Action) -> bool:
        """Do what a row of the table says, or say why not; False for what is the frame's."""
        if action.id == "app.help":
            self._desk.push_screen(Help(HOPCHECK, self.offers()))
            return True
        if action.id == "list.copy":
            self._copy()
            return True
        if action.where != HOPCHECK:
            return action.id not in _SHARED
        reason = self.reason(action)
        if reason:
            self._desk.say(f"{action.label}: {reason}", "warning")
        else:
            self._said = ("", "")
            getattr(self, action.method)()
        self._draw()
        return True

    def offers(self) -> tuple[Offer, ...]:
        """What the keys of this step do, with why not where that is so."""
        shown = standing.OFFERED[self.step or "layers"] if not self._state.covers else ()
        keymap = self._desk.session.keymap
        made = []
        for action in (*ACTIONS, *(BY_ID[each] for each in _SHARED)):
            here = action.id in shown or action.where != HOPCHECK
            weight = action.footer if here else 0
            keys = keymap.of(action)
            label = action.label
            if action.id == "hopcheck.run":
                keys = f"enter,{keys}" if self.step == "layers" else keys
                label = "run again" if self.step == "result" else label
            if action.id == "list.copy":
                weight = 0 if self.step == "layers" or self._state.covers else 68
                label = "copy remedy" if self.step == "result" and self._finding_shown else label
            made.append(Offer(action, keys, label, self.reason(action), weight))
        return tuple(made)

    def reason(self, action: Action) -> str:
        """Why the action cannot be done now; empty where it can."""
        general = chrome.refusal(action, self._desk.feed.link, self._desk.access)
        if general or action.where != HOPCHECK:
            return general
        if self._state.covers and self._state.notice is not None:
            return self._state.notice.sentence.rstrip(".")
        check = self._check
        if check is None:
            return "nothing is known of the check yet"
        there = standing.There(
            self.step or "layers",
            running=check.running or self.memory.asked,
            report=check.report is not None,
            target=bool(self.memory.plan.target(check)),
            many=self._count > 1,
            entry=self._entry,
        )
        return standing.reason(action.id, there)

    # What the keys do.

    def action_back(self) -> None:
        """Escape: out of a detail, a step back, or out of the wizard; nothing typed or found is lost."""
        self._desk.clear_notifications()
        check = self._check
        if self._state.covers or check is None:
            self.dismiss(None)
        elif self.step == "probes" and self._body.close_probe():
            pass
        elif self.step == "layers" and self._from is not None:
            self._enter(self._from)
        elif self.step == "probes" and not check.running and check.report is not None:
            self._enter("result")
        else:
            if check.running:
                self._desk.say("The check goes on: H shows it")
            self.dismiss(None)
        self._draw()

    def action_step(self, by: int) -> None:
        """The next or the previous thing that was found."""
        if self.step == "result" and self._count:
            self.at = (self.at + by) % self._count
            self._body.to_top()
            self._draw()

    def do_next(self) -> None:
        """The next finding."""
        self.action_step(1)

    def do_before(self) -> None:
        """The finding before."""
        self.action_step(-1)

    def do_run(self) -> None:
        """Ask the node to check."""
        self.run_worker(self._run(), name="hopcheck.run", group="commands", exit_on_error=False)

    def do_cancel(self) -> None:
        """End the check that runs."""
        work = self._call(CancelJob(id=self.memory.job), "cancel")
        self.run_worker(work, name="hopcheck.cancel", group="commands", exit_on_error=False)

    def do_long(self) -> None:
        """With long silences, or without."""
        self.memory.plan = replace(self.memory.plan, long=not self.memory.plan.long)

    def do_add(self) -> None:
        """Ask for a layer between."""
        self._edit(None)

    def do_edit(self) -> None:
        """Ask for the selected layer's URL."""
        entry = self._entry
        # Without any public URL there is none to select.
        check = self._check
        if check is not None and not self.memory.plan.target(check) and (entry is None or not entry.mine):
            entry = Entry(PUBLIC, "", "public", "")
        self._edit(entry)

    def do_remove(self) -> None:
        """Without the selected layer."""
        if self._entry is not None:
            self.memory.plan = self.memory.plan.without(self._entry.name)

    def do_probes(self) -> None:
        """Every probe."""
        self._enter("probes")

    def do_change(self) -> None:
        """Back to the layers."""
        self._from = self.step
        self._enter("layers", keep=True)

    @on(LiveTable.RowSelected, "#layers")
    def _chosen(self) -> None:
        self.do(BY_ID["hopcheck.run"])

    @on(LiveTable.RowHighlighted)
    @on(LiveTable.RowSelected, "#list")
    def _highlighted(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        """Columns and sentences for the new size."""
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        if self.is_current and self.focused is None and self.step is not None:
            self._body.take_keys(self.step)
        self._draw()

    # The node.

    async def _run(self) -> None:
        job = await self._call(self.memory.plan.command(), "run")
        if job:
            self.memory.begin(job)
            self._from = None
            self._enter("probes")
        self._desk.feed.hurry()
        self._draw()

    async def _call(self, command: Command, what: str) -> str:
        """Send it; the job that it started, and a sentence where it was refused."""
        node = self._desk.feed.node
        if node is None:
            self._say("error", "There is no node to ask.")
            return ""
        try:
            outcome = await node.call(command)
        except FaultError as error:
            self._say("error", f"{what}: {error.fault.sentence}")
            return ""
        if not outcome.ok:
            fault = outcome.fault
            said = f"{sentence(fault.message)} {fault.hint}" if fault is not None else "see the log"
            self._say("error", f"{what}: {said.rstrip()}")
        return outcome.job if outcome.ok else ""

    def _broken_off(self, fault: FaultView | None) -> None:
        if self.step == "probes":
            self._enter("layers")
        if fault is not None:
            self._say("error", f"{sentence(fault.message)} {fault.hint}".rstrip())
        else:
            self._say("warn", "The check was cancelled: nothing is concluded from it.")

    def _say(self, tone: str, text: str) -> None:
        if self.step == "layers":
            self._said = (tone, text)
        else:
            self._desk.say(text, "error" if tone == "error" else "warning", _FAULT_S)
        self._draw()

    # Layers.

    def _edit(self, entry: Entry | None) -> None:
        work = self._ask(entry)
        self.run_worker(work, name="hopcheck.layer", group="ask", exclusive=True, exit_on_error=False)

    async def _ask(self, entry: Entry | None) -> None:
        check = self._check
        name = await form.ask(self.app, self.memory, check, entry) if check is not None else ""
        self._draw()
        if name:
            self._body.point(name)

    # Drawing.

    def _enter(self, step: Step, *, keep: bool = False) -> None:
        self.step = step
        if not keep:
            self._from = None
        self._draw()
        self._body.take_keys(step)

    def _draw(self) -> None:
        if not self.is_mounted or not self.query("#steps"):
            return
        step, check, width = self.step, self._check, self.app.size.width
        shown = None if self._state.covers or check is None else step
        self.query_one("#notice", NoticeBox).show(self._state)
        self._body.turn(shown)
        self.query_one("#strip", PieceLine).show(standing.steps(step, width))
        back = ("esc", "back" if self._from is not None else "close", "screen.back")
        self.query_one("#footer", PieceLine).show(chrome.footer(self.offers(), width, back))
        if shown is None or check is None:
            return
        now_ms, report = self._now_ms, check.report
        if shown == "layers":
            self._body.show_layers(check, self.memory, self._said, now_ms)
        elif shown == "probes":
            self._body.show_probes(check, self.memory, now_ms)
        elif report is not None:
            self.at = max(0, min(self.at, self._count - 1))
            key = key_name(self._desk.session.keymap.of(BY_ID["list.copy"]))
            self._body.show_result(report, self.memory, self.at, key, now_ms)

    # What is there.

    def _copy(self) -> None:
        text, what = self._copied()
        if text:
            self.app.copy_to_clipboard(text)
        self._desk.say(f"Copied: {what}" if text else "Nothing is selected")

    def _copied(self) -> tuple[str, str]:
        report, check = self._report, self._check
        if self.step == "result" and report is not None:
            return result.copied(report, self.at)
        if self.step == "layers" and check is not None:
            line = self.memory.plan.cli(check)
            return line, line[:80]
        return result.plain(self._body.probe)

    @property
    def _desk(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    @property
    def _body(self) -> Body:
        return self.query_one(Body)

    @property
    def _now_ms(self) -> int:
        return self._desk.session.clock.wall_ms()

    @property
    def _check(self) -> HopCheckView | None:
        return self._view.hopcheck.value if self._view is not None else None

    @property
    def _report(self) -> HopReportView | None:
        return self._check.report if self._check is not None else None

    @property
    def _count(self) -> int:
        return result.count(self._report) if self._report is not None else 0

    @property
    def _finding_shown(self) -> bool:
        report = self._report
        return report is not None and self.at < len(report.findings)

    @property
    def _entry(self) -> Entry | None:
        check = self._check
        found = self.memory.plan.entries(check) if check is not None and self.is_mounted else ()
        return next((each for each in found if each.name == self._body.layer_name), None)
