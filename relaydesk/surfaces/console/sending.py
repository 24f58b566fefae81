"""From an action to a command, its question, its answer, and the job it may start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from relaydesk.core.commands import Command
from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import Action
from relaydesk.surfaces.console.ask import Confirm, Field, Prompt, Question
from relaydesk.surfaces.console.panes.prose import sentence

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
            await self._send(action, pane)
        except FaultError as error:
            self._app.say(f"{head(action, pane)}: {error.fault.sentence}", "error", FAULT_SHOWN_S)
        except Exception as error:
            _log.exception("%s failed in the console", action.id)
            self._app.say(
                f"{head(action, pane)} failed ({type(error).__name__}): see the log", "error", FAULT_SHOWN_S
            )

    async def _send(self, action: Action, pane: Pane) -> None:
        own = action.where == pane.spec.id
        if own:
            await pane.prepare(action)
        fields = pane.fields(action) if own else ()
        about = pane.meant(action) if own else ""
        answers: tuple[str, ...] = ()
        said = ""
        while True:
            if fields:
                given = await self._ask(action, pane, fields, said)
                if given is None:
                    return
                if pane.meant(action) != about:
                    raise LocalError("conflict", f"{about} is not selected any more", "nothing was done")
                answers = given
                # Whatever is refused below is asked for again, as it was typed.
                fields = tuple(
                    replace(field, value=answer) for field, answer in zip(fields, given, strict=True)
                )
            try:
                command = pane.request(action, *answers) if own else plain(action)
            except FaultError as error:
                if not fields:
                    raise
                said = error.fault.sentence
                continue
            what = head(action, pane, *answers)
            # What is confirmed is what is sent: the selection may move while the question stands.
            question = self._question(action, pane, what, answers)
            if question is not None and not await self._app.push_screen_wait(Confirm(question)):
                return
            said = await self._call(action, pane, command, what)
            if not said:
                return
            if not fields:
                self._app.say(f"{what}: {said}", "error", FAULT_SHOWN_S)
                return

    async def _ask(
        self, action: Action, pane: Pane, fields: Sequence[Field], said: str
    ) -> tuple[str, ...] | None:
        def line(answers: tuple[str, ...]) -> str:
            return self._cli(action, pane, answers)

        title = capital(head(action, pane) if pane.meant(action) else action.help)
        return await self._app.push_screen_wait(Prompt(title, fields, line, pane.notes(action), said))

    async def _call(self, action: Action, pane: Pane, command: Command, what: str) -> str:
        """Send it and show what came of it; a refusal is a sentence for whoever asked."""
        node = self._app.feed.node
        if node is None:
            return "there is no node to ask"
        try:
            outcome = await node.call(command)
        except FaultError as error:
            return error.fault.sentence
        self._app.feed.hurry()
        if outcome.job:
            self._jobs[outcome.job] = what
        if outcome.ok:
            if not pane.answered(action, command, outcome):
                self._app.say(f"{what}: {'started' if outcome.job else pane.done(action, command)}")
            return ""
        if outcome.fault is None:
            return "it failed, and the node did not say why: see the log"
        return f"{sentence(outcome.fault.message)} {outcome.fault.hint}".rstrip()

    def follow(self, view: NodeView) -> None:
        """Say how jobs that were started here have ended."""
        jobs = view.jobs.value
        for job in jobs.jobs if jobs is not None and self._jobs else ():
            if job.state == "running" or job.id not in self._jobs:
                continue
            what = self._jobs.pop(job.id)
            pane = self._app.pane
            if job.state == "failed" and pane is not None and "jobs" in pane.spec.sections:
                continue  # the pane says it, and what to do
            if job.fault is not None:
                said = f"{sentence(job.fault.message)} {job.fault.hint}".rstrip()
                self._app.say(f"{what}: {said}", "error", FAULT_SHOWN_S)
            else:
                self._app.say(f"{what}: {job.state}")

    def _cli(self, action: Action, pane: Pane, answers: tuple[str, ...]) -> str:
        meta = self._app.feed.shown.meta.value
        line = pane.cli(action, *answers) if action.where == pane.spec.id else action.cli
        return line.replace("PID", str(meta.pid) if meta is not None else "PID")

    def _question(self, action: Action, pane: Pane, what: str, answers: tuple[str, ...]) -> Question | None:
        own = action.where == pane.spec.id
        sentences = pane.asks(action) if own else ()
        if not action.danger and not sentences:
            return None
        loses = pane.loss(action) if own else action.danger
        return Question(f"{capital(what)}?", sentences, action.label, self._cli(action, pane, answers), loses)


def plain(action: Action) -> Command:
    """The command of an action that nothing needs filling in."""
    assert action.command is not None
    return action.command()


def head(action: Action, pane: Pane, *answers: str) -> str:
    """What is done, and to what: ``pull smollm2``, ``stop the node``."""
    if action.where == pane.spec.id:
        return pane.phrase(action, *answers)
    noun, _, verb = action.title.partition(": ")
    return f"{verb} the {noun.lower()}" if verb else action.label


def capital(text: str) -> str:
    """A sentence's beginning."""
    return text[:1].upper() + text[1:]
