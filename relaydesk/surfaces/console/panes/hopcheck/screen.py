"""The wizard "Check my X-Zs-Relay-Hop passthrough": layers, probes, result, by keyboard alone."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final, cast

from textual import on
from textual.binding import Binding, BindingType

from relaydesk.core.commands import CancelJob, Command
from relaydesk.core.errors import FaultError
from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import FaultView
from relaydesk.surfaces.console.action import ANYWHERE, LIST, Action
from relaydesk.surfaces.console.bindings import BY_ID, bindings_for
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.help import Help
from relaydesk.surfaces.console.panes.hopcheck import form, result, standing
from relaydesk.surfaces.console.panes.hopcheck.actions import HOPCHECK
from relaydesk.surfaces.console.panes.hopcheck.plan import PUBLIC, Entry
from relaydesk.surfaces.console.panes.hopcheck.wizard import SHARED, Wizard
from relaydesk.surfaces.console.panes.prose import sentence
from relaydesk.surfaces.console.widgets.live_table import LiveTable

_FAULT_S: Final = 12.0


class HopCheck(Wizard):
    """Three steps over the pane that it was opened from. ``memory`` outlives it.

    The frame hands it every view (`take`), every second (`tick`) and every action that a key or a click asks
    for (`do`).
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_for(HOPCHECK),
        *(each for each in bindings_for(ANYWHERE, LIST) if cast("Binding", each).id in SHARED),
        Binding("escape", "back", show=False),
        Binding("tab,right", "step(1)", show=False),
        Binding("shift+tab,left", "step(-1)", show=False),
    ]

    def on_mount(self) -> None:
        self.take(self.desk.feed.shown, self.desk.feed.link)

    # What the frame hands over.

    def take(self, view: NodeView, link: Link) -> None:
        """A new view or a new link."""
        self.view = view
        covered, self.state = self.state.covers, standing.state(view, link)
        if link.state == "lost":
            self.memory.forget()
        check = view.hopcheck.value
        if check is not None:
            news = self.memory.take(check, view.jobs.value, self.now_ms)
            if self.step is None:
                self.enter(standing.first_step(check))
            elif news.what == "ended" and self.step != "layers":
                self.at = 0
                self.body.to_top()
                self.enter("result")
            elif news.what == "broken off":
                self._broken_off(news.fault)
        self.draw()
        if covered and not self.state.covers and self.step is not None and self.is_current:
            self.body.take_keys(self.step)

    def tick(self) -> None:
        """Once a second: for times that run."""
        self.draw()

    def do(self, action: Action) -> bool:
        """Do what a row of the table says, or say why not; False for what is the frame's."""
        if action.id == "app.help":
            self.desk.push_screen(Help(HOPCHECK, self.offers()))
            return True
        if action.id == "list.copy":
            self._copy()
            return True
        if action.where != HOPCHECK:
            return action.id not in SHARED
        reason = self.reason(action)
        if reason:
            self.desk.say(f"{action.label}: {reason}", "warning")
        else:
            self.said = ("", "")
            getattr(self, action.method)()
        self.draw()
        return True

    # What the keys do.

    def action_back(self) -> None:
        """Escape: out of a detail, a step back, or out of the wizard; nothing typed or found is lost."""
        self.desk.clear_notifications()
        check = self.check_view
        if self.state.covers or check is None:
            self.dismiss(None)
        elif self.step == "probes" and self.body.close_probe():
            pass
        elif self.step == "layers" and self.came_from is not None:
            self.enter(self.came_from)
        elif self.step == "probes" and not check.running and check.report is not None:
            self.enter("result")
        else:
            if check.running:
                self.desk.say("The check goes on: H shows it")
            self.dismiss(None)
        self.draw()

    def action_step(self, by: int) -> None:
        """The next or the previous thing that was found."""
        if self.step == "result" and self.count:
            self.at = (self.at + by) % self.count
            self.body.to_top()
            self.draw()

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
        work = self._call(CancelJob(id=self.memory.job))
        self.run_worker(work, name="hopcheck.cancel", group="commands", exit_on_error=False)

    def do_long(self) -> None:
        """With long silences, or without."""
        self.memory.plan = replace(self.memory.plan, long=not self.memory.plan.long)

    def do_add(self) -> None:
        """Ask for a layer between."""
        self._edit(None)

    def do_edit(self) -> None:
        """Ask for the selected layer's URL."""
        entry = self.entry
        # Without any public URL there is none to select.
        check = self.check_view
        if check is not None and not self.memory.plan.target(check) and (entry is None or not entry.mine):
            entry = Entry(PUBLIC, "", "public", "")
        self._edit(entry)

    def do_remove(self) -> None:
        """Without the selected layer."""
        if self.entry is not None:
            self.memory.plan = self.memory.plan.without(self.entry.name)

    def do_probes(self) -> None:
        """Every probe."""
        self.enter("probes")

    def do_change(self) -> None:
        """Back to the layers."""
        self.came_from = self.step
        self.enter("layers", keep=True)

    @on(LiveTable.RowSelected, "#layers")
    def _chosen(self) -> None:
        self.do(BY_ID["hopcheck.run"])

    @on(LiveTable.RowHighlighted)
    @on(LiveTable.RowSelected, "#list")
    def _highlighted(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        """Columns and sentences for the new size."""
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        if self.is_current and self.focused is None and self.step is not None:
            self.body.take_keys(self.step)
        self.draw()

    # The node.

    async def _run(self) -> None:
        job = await self._call(self.memory.plan.command())
        if job:
            self.memory.begin(job)
            self.came_from = None
            self.enter("probes")
        self.desk.feed.hurry()
        self.draw()

    async def _call(self, command: Command) -> str:
        """Send it; the job that it started, and a sentence where it was refused."""
        node = self.desk.feed.node
        if node is None:
            self._say("error", "There is no node to ask.")
            return ""
        try:
            outcome = await node.call(command)
        except FaultError as error:
            self._say("error", result.capital(error.fault.sentence))
            return ""
        if not outcome.ok:
            self._say("error", _told(outcome.fault))
        return outcome.job if outcome.ok else ""

    def _broken_off(self, fault: FaultView | None) -> None:
        if self.step == "probes":
            self.enter("layers")
        if fault is not None:
            self._say("error", _told(fault))
        else:
            self._say("warn", "The check was cancelled: nothing is concluded from it.")

    def _say(self, tone: str, text: str) -> None:
        if self.step == "layers":
            self.said = (tone, text)
        else:
            self.desk.say(text, "error" if tone == "error" else "warning", _FAULT_S)
        self.draw()

    # Layers.

    def _edit(self, entry: Entry | None) -> None:
        work = self._ask(entry)
        self.run_worker(work, name="hopcheck.layer", group="ask", exclusive=True, exit_on_error=False)

    async def _ask(self, entry: Entry | None) -> None:
        check = self.check_view
        name = await form.ask(self.app, self.memory, check, entry) if check is not None else ""
        self.draw()
        if name:
            self.body.point(name)

    def _copy(self) -> None:
        text, what = self.copied()
        if text:
            self.app.copy_to_clipboard(text)
        self.desk.say(f"Copied: {what}" if text else "Nothing is selected")


def _told(fault: FaultView | None) -> str:
    """What went wrong and the next step, as one sentence."""
    if fault is None:
        return "It failed, and the node did not say why: see the log."
    hint = f": {fault.hint}" if fault.hint else ""
    return sentence(result.capital(f"{fault.message.rstrip('.')}{hint}"))
