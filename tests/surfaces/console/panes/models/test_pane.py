"""The models pane through its keys."""

from __future__ import annotations

from pathlib import Path

import msgspec

from relaydesk.core.codec import fault_view, to_builtins
from relaydesk.core.commands import (
    AddModel,
    CancelJob,
    Command,
    FitModel,
    LoadModel,
    Outcome,
    PullModel,
    RemoveModel,
    SetModel,
    UnloadModel,
)
from relaydesk.core.errors import Fault
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.view.sections import JobsView, MemoryView, ModelsView, ModelView
from relaydesk.surfaces.console.ask import Confirm, Prompt
from tests.surfaces.console.panes.scenes import EMPTY, LOAD_FAILED, LONG, PULL, REPORTS, busy
from tests.surfaces.console.stage import Desk, console, refreshed, screen_text, settled, until


def _answer_fits(desk: Desk, asked: list[str]) -> None:
    async def handle(command: FitModel) -> Outcome:
        asked.append(command.name)
        report = REPORTS.get(command.name)
        if report is None:
            return Outcome(ok=False, fault=fault_view(Fault("bad_model_file", "its header is damaged")))
        return Outcome(ok=True, value=to_builtins(report))

    desk.dispatcher.on(FitModel, handle)


async def test_why_a_model_does_not_fit_is_two_keys_away(desk: Desk) -> None:
    _answer_fits(desk, [])
    async with console(desk) as (app, pilot):
        await pilot.press("2", "down")
        assert "needs 21840 MiB, and 15800 MiB is all there is." in await settled(app, pilot)
        await pilot.press("enter")
        text = await settled(app, pilot)
        assert "can never fit here: 6040 MiB more than there is in all" in text
        assert "add 6040 MiB of memory" in text


async def test_a_report_is_asked_for_when_it_is_looked_at_and_when_it_may_differ(desk: Desk) -> None:
    asked: list[str] = []
    _answer_fits(desk, asked)
    async with console(desk) as (app, pilot):
        await pilot.press("2", "down", "up")
        await settled(app, pilot)
        assert asked == []
        await pilot.press("enter")
        await settled(app, pilot)
        assert asked == ["smollm2"]
        models = desk.values["models"]
        # Requests come and go, and nothing else does.
        busier = msgspec.structs.replace(models.models[0], in_flight=1, queued=0)
        desk.set(models=msgspec.structs.replace(models, models=(busier, *models.models[1:])))
        await refreshed(app, pilot)
        await settled(app, pilot)
        assert asked == ["smollm2"]
        desk.set(models=msgspec.structs.replace(models, memory=MemoryView("ram", 15_800, 5_000)))
        await refreshed(app, pilot)
        await settled(app, pilot)
        assert asked == ["smollm2", "smollm2"]


async def test_beside_the_list_the_report_follows_the_cursor(desk: Desk) -> None:
    desk.values |= busy()
    asked: list[str] = []
    _answer_fits(desk, asked)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("2")
        assert "● loaded" in await settled(app, pilot)
        await pilot.press("down")
        assert "can never fit here" in await settled(app, pilot)
        await pilot.press("down")
        assert "its header is damaged" in await settled(app, pilot)
        assert asked == ["smollm2", "qwen3-32b", "gemma-3-270m"]


async def test_the_suggested_settings_are_one_key_away(desk: Desk) -> None:
    _answer_fits(desk, [])
    model = ModelView(LONG.model, "unavailable", False, desk.values["models"].models[1].fit_reason, "", 8192)
    desk.values["models"] = ModelsView(MemoryView("setting", 700, 157), (model,))
    desk.answer(SetModel, Outcome(ok=True))
    async with console(desk) as (app, pilot):
        await pilot.press("2")
        assert "f make it fit" in (await settled(app, pilot)).splitlines()[-1]
        # The report was not looked at: it is fetched, and nothing is changed unasked.
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        text = " ".join((await settled(app, pilot)).split())
        assert "Make smollm2-long fit?" in text
        assert "slots 8 → 2" in text
        assert "relaydesk model set smollm2-long slots=2" in text
        await pilot.press("f", "enter", "escape")
        await pilot.pause()
        assert desk.sent == []
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: bool(desk.sent))
        assert desk.sent == [SetModel(name="smollm2-long", changes={"slots": 2})]
        await until(pilot, lambda: "make smollm2-long fit: slots 8 → 2" in screen_text(app))


async def test_what_only_has_to_wait_changes_no_setting(desk: Desk) -> None:
    wait = msgspec.structs.replace(LONG.suggestion, change="wait", sentence="wait until smollm2 falls idle")
    desk.answer(SetModel, Outcome(ok=True))

    async def handle(_command: FitModel) -> Outcome:
        return Outcome(ok=True, value=to_builtins(msgspec.structs.replace(LONG, suggestion=wait)))

    desk.dispatcher.on(FitModel, handle)
    async with console(desk) as (app, pilot):
        await pilot.press("2", "down", "f")
        await until(pilot, lambda: "nothing to change: wait until" in " ".join(screen_text(app).split()))
    assert desk.sent == []


async def test_a_failed_pull_is_dismissed_by_esc_or_by_the_key_that_breaks_one_off(desk: Desk) -> None:
    failed = msgspec.structs.replace(PULL, state="failed", fault=LOAD_FAILED)
    async with console(desk) as (app, pilot):
        for key, name in (("escape", "job_1"), ("X", "job_2")):
            desk.set(jobs=JobsView((msgspec.structs.replace(failed, id=name),)))
            await refreshed(app, pilot)
            for pane in ("1", "2"):
                await pilot.press(pane)
                assert "pull smollm2 failed" in await settled(app, pilot)
            await pilot.press(key)
            assert "pull smollm2 failed" not in await settled(app, pilot)
            await pilot.press("1")
            assert "pull smollm2 failed" not in await settled(app, pilot)
            assert "nothing is being pulled" not in screen_text(app)


async def test_tab_leaves_the_list_only_for_what_is_seen(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("2", "tab", "down")
        assert app.pane is not None
        assert app.pane.table is not None
        assert app.pane.table.cursor_key == "qwen3-32b"
        await pilot.resize_terminal(120, 36)
        await pilot.press("tab")
        assert app.focused is not None
        assert app.focused.id == "detail"
        await pilot.press("escape", "up")
        assert app.pane.table.cursor_key == "smollm2"


COMMANDS: tuple[tuple[tuple[str, ...], Command], ...] = (
    (("down", "down", "l"), LoadModel(name="gemma-3-270m")),
    (("u", "y"), UnloadModel(name="smollm2")),
    (("down", "x", "y"), RemoveModel(name="qwen3-32b")),
    (("X",), CancelJob(id="job_1")),
    (("a", *"hf:o/r", "enter"), PullModel(reference="hf:o/r")),
    (("A", *"/m/x", "enter"), AddModel(spec=ModelSpec(name="", path="/m/x"))),
    (("A", *"x", "enter"), AddModel(spec=ModelSpec(name="", path=str(Path("x").absolute())))),
    (("w", "ctrl+u", *"2h", "enter"), SetModel(name="smollm2", changes={"keep_alive_s": 7200})),
    (("w", "ctrl+u", *"-1", "enter"), SetModel(name="smollm2", changes={"keep_alive_s": -1})),
)


async def test_keys_send_commands(desk: Desk) -> None:
    desk.values |= busy()
    for kind in {type(command) for _, command in COMMANDS}:
        desk.answer(kind, Outcome(ok=True))
    async with console(desk) as (app, pilot):
        await pilot.press("2")
        await settled(app, pilot)
        for keys, command in COMMANDS:
            desk.sent.clear()
            await pilot.press("home", *keys)
            await until(pilot, lambda: bool(desk.sent))
            assert desk.sent == [command]


REFUSALS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("l",), "smollm2 is warm"),
    (("down", "u"), "qwen3-32b is not loaded"),
    (("X",), "nothing is being pulled or loaded"),
    (("w", *"so", "enter"), "'so' is no time to keep a model"),
    (("A", *"a://x", "enter"), "a server needs a name too"),
)


async def test_what_cannot_be_done_is_said(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("2")
        await settled(app, pilot)
        for keys, said in REFUSALS:
            await pilot.press("home", *keys)
            await until(pilot, lambda said=said: said in " ".join(screen_text(app).split()))  # type: ignore[misc]
            if len(app.screen_stack) > 1:
                await pilot.press("escape")
        assert desk.sent == []


async def test_removing_a_model_in_use_says_so(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("2", "x")
        text = " ".join((await settled(app, pilot)).split())
        assert "2 requests under way" in text
        assert "its file stays where it is" in text
        assert "relaydesk model rm smollm2" in text


async def test_progress_stands_above_the_list_and_goes_with_its_job(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("2")
        await settled(app, pilot)
        desk.set(jobs=JobsView((PULL,)))
        await refreshed(app, pilot)
        assert "◐ pull smollm2" in await settled(app, pilot)
        further = msgspec.structs.replace(PULL, done=78_689_946)
        desk.set(jobs=JobsView((further,)))
        await refreshed(app, pilot)
        assert " 80%  downloading" in await settled(app, pilot)
        desk.set(jobs=JobsView((msgspec.structs.replace(further, state="done"),)))
        await refreshed(app, pilot)
        assert "pull smollm2" not in await settled(app, pilot)


async def test_the_prompt_shows_the_command_line_and_examples(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("2", "a", *"hf:me/it")
        text = " ".join((await settled(app, pilot)).split())
        assert "relaydesk model pull hf:me/it" in text
        assert "smollm2 comes from the package index" in text


async def test_no_model_says_what_to_press(desk: Desk) -> None:
    desk.values |= EMPTY
    async with console(desk) as (app, pilot):
        await pilot.press("2")
        assert "a pulls one: smollm2" in await settled(app, pilot)
        await pilot.press("l")
        assert "no model is selected" in await settled(app, pilot)
        assert "No model is registered yet." in screen_text(app)


async def test_a_model_is_offered_at_a_price(desk: Desk) -> None:
    _answer_fits(desk, [])
    desk.values |= busy()
    desk.answer(SetModel, Outcome(ok=True))
    async with console(desk) as (app, pilot):
        await pilot.press("2", "down", "o")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("tab", "ctrl+u", *"0.1", "tab", "ctrl+u", *"x", "enter")
        await until(pilot, lambda: "written: a price must be" in screen_text(app))
        await pilot.press("tab", "tab", "ctrl+u", *"0.4")
        text = " ".join((await settled(app, pilot)).split())
        assert "relaydesk model set qwen3-32b offer=yes input-price=0.1 output-price=0.4" in text
        await pilot.press("enter")
        await until(pilot, lambda: bool(desk.sent))
        changes = {"offer": True, "input_rate": 100_000, "output_rate": 400_000}
        assert desk.sent == [SetModel(name="qwen3-32b", changes=changes)]
        await until(pilot, lambda: "network: offered, 0.1 USD read" in screen_text(app))


async def test_models_of_others_are_shown_and_left_alone(desk: Desk) -> None:
    asked: list[str] = []
    _answer_fits(desk, asked)
    desk.values |= busy()
    async with console(desk) as (app, pilot):
        await pilot.press("2", *["down"] * 4)
        await pilot.press("l")
        assert "no model is selected" in await settled(app, pilot)
        await pilot.press("escape", "down", "x")
        text = await settled(app, pilot)
        assert "it is a model of others" in text
        assert "net/gemma-3-27b-it: it can be asked now, through any of 12 relays." in text
        await pilot.press("escape", "enter")
        assert "Clients ask for it as net/gemma-3-27b-it" in await settled(app, pilot)
        assert asked == []
        # Sorted there is one list, without a head.
        await pilot.press("escape", "s")
        assert "── of others" not in await settled(app, pilot)
        # What others offer is there for a node without a model of its own.
        desk.set(models=EMPTY["models"])
        await refreshed(app, pilot)
        assert "net/qwen3-4b" in await settled(app, pilot)
