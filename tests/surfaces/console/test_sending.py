"""From a key to a command: what is asked, what is sent, what is said of it, and of the job it starts."""

from __future__ import annotations

from typing import Any

import pytest

from relaydesk.core.commands import Command, LoadModel, Outcome, PullModel, RemoveModel, ShowConfig
from relaydesk.core.errors import LocalError
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import FaultView, JobsView, JobView
from relaydesk.surfaces.console.action import Action
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.ask import Confirm, Prompt, TextInput
from relaydesk.surfaces.console.panes.log.pane import LogPane
from relaydesk.surfaces.console.sending import Sender
from tests.surfaces.console.stage import NOW_MS, Desk, console, screen_text, settled, until

PULL = Action(
    "log.pull", "", "Model: pull", "pull", "x", "log", "relaydesk model pull ANSWER", PullModel, "which"
)
LOAD = Action("log.load", "", "Model: load", "load", "x", "log", "relaydesk model load NAME", LoadModel)
REMOVE = Action("log.rm", "", "Model: forget", "forget", "x", "log", "relaydesk model rm NAME", RemoveModel)
CONFIG = Action("x.config", "", "Config: show", "show", "x", cli="relaydesk config show", command=ShowConfig)


class Subject:
    """What a pane of models would answer, on the log pane."""

    name = "smollm2"

    def request(self, action: Action, answer: str = "") -> Command:
        if action is PULL:
            if "/" in answer:
                raise LocalError("invalid_request", f"{answer} is no reference", "try smollm2")
            return PullModel(answer)
        return LoadModel(self.name) if action is LOAD else RemoveModel(self.name)

    def meant(self, action: Action, *answers: str) -> str:
        return (answers[0] if answers else "") if action is PULL else self.name


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Subject:
    subject = Subject()
    monkeypatch.setattr(LogPane, "request", lambda _self, *args: subject.request(*args))
    monkeypatch.setattr(LogPane, "meant", lambda _self, *args: subject.meant(*args))
    return subject


async def _send(app: ConsoleApp, action: Action) -> Sender:
    await app.show_pane("log")
    sender = Sender(app)
    assert app.pane is not None
    app.run_worker(sender.send(action, app.pane), exit_on_error=False)
    return sender


async def test_a_text_is_asked_for_and_its_command_line_shown(desk: Desk, subject: Subject) -> None:
    desk.answer(PullModel, Outcome(ok=True, job="job_1"))
    async with console(desk, (100, 30)) as (app, pilot):
        await _send(app, PULL)
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("enter", *"smollm2")
        assert "relaydesk model pull smollm2" in await settled(app, pilot)
        assert desk.sent == []
        await pilot.press("enter")
        await until(pilot, lambda: desk.sent == [PullModel("smollm2")])
        await until(pilot, lambda: "pull smollm2: started" in screen_text(app))


async def test_a_question_can_be_left(desk: Desk, subject: Subject) -> None:
    desk.answer(PullModel, Outcome(ok=True))
    async with console(desk, (100, 30)) as (app, pilot):
        await _send(app, PULL)
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("a", "escape")
        await settled(app, pilot)
        assert len(app.screen_stack) == 1
    assert desk.sent == []


async def test_what_was_confirmed_is_sent_though_the_selection_moved(desk: Desk, subject: Subject) -> None:
    desk.answer(RemoveModel, Outcome(ok=True))
    async with console(desk, (100, 30)) as (app, pilot):
        await _send(app, REMOVE)
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        text = await settled(app, pilot)
        assert "Forget smollm2?" in text
        assert "relaydesk model rm smollm2" in text
        assert "Lost: the registration" in text
        subject.name = "another"
        await pilot.press("y")
        await until(pilot, lambda: desk.sent == [RemoveModel("smollm2")])


async def test_an_answer_that_cannot_be_is_a_sentence(desk: Desk, subject: Subject) -> None:
    async with console(desk, (100, 30)) as (app, pilot):
        await _send(app, PULL)
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("a", "slash", "enter")
        await until(pilot, lambda: "a/ is no reference: try smollm2" in screen_text(app))
        # It is asked again, with what was typed.
        assert app.screen.query_one(TextInput).value == "a/"
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1
    assert desk.sent == []


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(ok=True), "load smollm2: done"),
        (Outcome(ok=False), "load smollm2: it failed, and the node did not say why"),
        (
            Outcome(ok=False, fault=FaultView("conflict", safe_text("it is loading"), safe_text("wait"))),
            "load smollm2: it is loading. wait",
        ),
    ],
)
async def test_what_came_of_it_is_said(desk: Desk, subject: Subject, outcome: Outcome, said: str) -> None:
    desk.answer(LoadModel, outcome)
    async with console(desk, (100, 30)) as (app, pilot):
        await _send(app, LOAD)
        await until(pilot, lambda: said in " ".join(screen_text(app).replace("▌", " ").split()))


@pytest.mark.parametrize(
    ("state", "fault", "said"),
    [
        ("done", None, "load smollm2: done"),
        ("cancelled", None, "load smollm2: cancelled"),
        (
            "failed",
            FaultView("engine_failed", safe_text("no memory"), safe_text("free some")),
            "no memory. free some",
        ),
    ],
)
async def test_the_end_of_a_job_is_said_once(
    desk: Desk, subject: Subject, state: Any, fault: Any, said: str
) -> None:
    desk.answer(LoadModel, Outcome(ok=True, job="job_1"))
    async with console(desk, (100, 30)) as (app, pilot):
        sender = await _send(app, LOAD)
        await until(pilot, lambda: desk.sent == [LoadModel("smollm2")])
        await settled(app, pilot)
        app.clear_notifications()
        running = JobView("job_1", "load", "smollm2", "running", NOW_MS)
        other = JobView("job_2", "load", "x", "done", NOW_MS)
        ended = JobView("job_1", "load", "smollm2", state, NOW_MS, fault=fault)
        for jobs in ((running, other), (ended, other), (ended, other)):
            desk.set(jobs=JobsView(jobs))
            await until(pilot, lambda jobs=jobs: app.feed._latest.jobs.value == JobsView(jobs))
            sender.follow(app.feed._latest)
        await until(pilot, lambda: said in " ".join(screen_text(app).replace("▌", " ").split()))
        assert len(app._notifications) == 1


async def test_a_command_without_fields_needs_no_pane(desk: Desk) -> None:
    desk.answer(ShowConfig, Outcome(ok=True))
    async with console(desk, (100, 30)) as (app, pilot):
        await _send(app, CONFIG)
        await until(pilot, lambda: desk.sent == [ShowConfig()])
