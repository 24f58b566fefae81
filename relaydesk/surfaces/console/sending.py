"""From an action to a command, its question, its answer, and the job it may start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from relaydesk.core.commands import Command, Outcome
from relaydesk.core.errors import FaultError
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import Action
from relaydesk.surfaces.console.ask import Confirm, Prompt, Question

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp
    from relaydesk.surfaces.console.pane import Pane

_log: Final = logging.getLogger(__name__)

# A fault is read, not glanced at.
FAULT_SHOWN_S: Final = 12.0


class Sender:
    """Sends commands for the console and says what came of them."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._jobs: dict[str, str] = {}

    async def send(self, action: Action, pane: Pane) -> None:
        """Ask what must be asked, send, show the outcome. For a worker: it waits for people."""
        try:
            answer = ""
            if action.ask:
                line = self._cli(action, pane, "ANSWER")
                given = await self._app.push_screen_wait(Prompt(action.title, action.ask, line))
                if given is None:
                    return
                answer = given
            own = action.where == pane.spec.id
            command = pane.request(action, answer) if own else plain(action)
            subject = pane.subject() if own else ""
            # What is confirmed is what is sent: the selection may move while the question stands.
            question = self._question(action, pane, answer, subject)
            if question is not None and not await self._app.push_screen_wait(Confirm(question)):
                return
            await self._call(action, pane, command, subject)
        except FaultError as error:
            self._app.say(f"{action.title}: {error.fault.sentence}", "error", FAULT_SHOWN_S)
        except Exception as error:
            _log.exception("%s failed in the console", action.id)
            self._app.say(
                f"{action.title} failed ({type(error).__name__}): see the log", "error", FAULT_SHOWN_S
            )

    async def _call(self, action: Action, pane: Pane, command: Command, subject: str) -> None:
        node = self._app.feed.node
        if node is None:
            return
        outcome = await node.call(command)
        self._app.feed.hurry()
        what = f"{action.title}: {subject}" if subject else action.title
        if outcome.job:
            self._jobs[outcome.job] = what
        if not pane.answered(action, command, outcome):
            self._report(what, outcome)

    def _report(self, what: str, outcome: Outcome) -> None:
        if outcome.ok:
            self._app.say(f"{what}: {'started' if outcome.job else 'done'}")
        elif outcome.fault is not None:
            hint = f" {outcome.fault.hint}" if outcome.fault.hint else ""
            self._app.say(f"{what}: {outcome.fault.message}.{hint}", "error", FAULT_SHOWN_S)
        else:
            self._app.say(f"{what} failed, and the node did not say why: see the log", "error", FAULT_SHOWN_S)

    def follow(self, view: NodeView) -> None:
        """Say how jobs that were started here have ended."""
        jobs = view.jobs.value
        for job in jobs.jobs if jobs is not None and self._jobs else ():
            if job.state == "running" or job.id not in self._jobs:
                continue
            what = self._jobs.pop(job.id)
            if job.fault is not None:
                hint = f" {job.fault.hint}" if job.fault.hint else ""
                self._app.say(f"{what}: {job.fault.message}.{hint}", "error", FAULT_SHOWN_S)
            else:
                self._app.say(f"{what}: {job.state}")

    def _cli(self, action: Action, pane: Pane, answer: str) -> str:
        meta = self._app.feed.shown.meta.value
        line = pane.cli(action, answer) if action.where == pane.spec.id else action.cli
        return line.replace("PID", str(meta.pid) if meta is not None else "PID")

    def _question(self, action: Action, pane: Pane, answer: str, subject: str) -> Question | None:
        if not action.danger:
            return None
        loses = pane.loss(action) if action.where == pane.spec.id else action.danger
        title = f"{action.title}: {subject}?" if subject else f"{action.title}?"
        return Question(title, (), action.label, self._cli(action, pane, answer), loses)


def plain(action: Action) -> Command:
    """The command of an action that nothing needs filling in."""
    assert action.command is not None
    return action.command()
