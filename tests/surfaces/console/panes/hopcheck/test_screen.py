"""The wizard through its keys."""

from __future__ import annotations

from typing import Any

from textual.widgets import Input

from relaydesk.core.commands import CancelJob, CheckHop, Outcome
from relaydesk.core.errors import LocalError
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.panes.hopcheck.form import KeptPrompt
from relaydesk.surfaces.console.panes.hopcheck.screen import HopCheck
from tests.surfaces.console.panes.hopcheck.scenes import (
    BAD,
    CLEAN,
    FAILING,
    FOUND,
    IDLE,
    at_desk,
    jobs,
    later,
    replace,
    under_way,
    with_report,
)
from tests.surfaces.console.stage import Desk, console, refreshed, screen_text, settled, until

JOB = "job_0123456789ab"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _wizard(app: ConsoleApp) -> HopCheck:
    assert isinstance(app.screen, HopCheck)
    return app.screen


async def test_found_mended_and_run_again(desk: Desk) -> None:
    at_desk(desk, IDLE)
    desk.answer(CheckHop, Outcome(ok=True, job=JOB))
    async with console(desk) as (app, pilot):
        await pilot.press("7", "H")
        text = await settled(app, pilot)
        assert "Check my X-Zs-Relay-Hop passthrough" in text
        assert "https://node.example.org" in text
        await pilot.press("enter")
        await until(pilot, lambda: desk.sent == [CheckHop()])
        assert "The node is asked to begin." in await settled(app, pilot)
        desk.set(hopcheck=under_way(23), jobs=jobs("running"))
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "23 of 65 probes ended" in text
        assert "the marker on a refusal        ● passed    ● passed    ○ waiting   ○ waiting" in text
        desk.set(hopcheck=FOUND, jobs=jobs("done"))
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "✗ nginx removes X-Zs-Relay-Hop." in text
        assert "- proxy_hide_header X-Zs-Relay-Hop;" in text
        await pilot.press("c")
        assert "add_header X-Zs-Relay-Hop $upstream_http_x_zs_relay_hop always;\n" in app.clipboard
        await pilot.press("r")
        await until(pilot, lambda: len(desk.sent) == 2)
        assert CLEAN.report is not None
        desk.set(hopcheck=with_report(later(CLEAN.report)))
        await refreshed(app, pilot)
        text = _flat(await settled(app, pilot))
        assert "● The marker reaches the world; nothing was found." in text
        assert "● Gone since 10:52:20: nginx removes X-Zs-Relay-Hop." in text


async def test_layers_are_added_edited_and_taken_out_and_sent(desk: Desk) -> None:
    at_desk(desk, IDLE)
    desk.answer(CheckHop, Outcome(ok=True, job=JOB))
    async with console(desk) as (app, pilot):
        await pilot.press("H", "a")
        await until(pilot, lambda: isinstance(app.screen, KeptPrompt))
        await pilot.press(*"nginx", "tab", *"127.0.0.1:8080", "enter")
        await until(pilot, lambda: "has no http:// or https:// in front" in _flat(screen_text(app)))
        # What was typed stands there again.
        await pilot.press("tab", "home", *"http://", "enter")
        await until(pilot, lambda: isinstance(app.screen, HopCheck))
        text = await settled(app, pilot)
        assert "nginx       http://127.0.0.1:8080" in text
        assert "--via nginx=http://127.0.0.1:8080" in _flat(text)
        await pilot.press("end", "e")
        await until(pilot, lambda: isinstance(app.screen, KeptPrompt))
        app.screen.query_one(Input).value = "https://other.example"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, HopCheck))
        assert "https://other.example given here" in _flat(await settled(app, pilot))
        await pilot.press("l", "r")
        await until(pilot, lambda: bool(desk.sent))
        assert desk.sent == [CheckHop("https://other.example", ("nginx=http://127.0.0.1:8080",), long=True)]


async def test_what_was_given_is_taken_out_and_what_the_node_found_is_not(desk: Desk) -> None:
    at_desk(desk, IDLE)
    async with console(desk) as (app, pilot):
        await pilot.press("H")
        await settled(app, pilot)
        wizard = _wizard(app)
        wizard.memory.plan = wizard.memory.plan.with_layer("nginx", "http://127.0.0.1:8080", IDLE)
        await pilot.press("x")
        assert "remove: the node found it itself, and always asks it" in _flat(await settled(app, pilot))
        await pilot.press("down", "down", "x")
        await settled(app, pilot)
        assert wizard.memory.plan.via == ()
        assert "nginx" not in await settled(app, pilot)


async def test_escape_goes_back_and_loses_nothing_that_was_typed(desk: Desk) -> None:
    at_desk(desk, IDLE)
    async with console(desk) as (app, pilot):
        await pilot.press("7", "H", "l", "a")
        await until(pilot, lambda: isinstance(app.screen, KeptPrompt))
        await pilot.press(*"edge", "tab", *"https://ed", "escape")
        await until(pilot, lambda: isinstance(app.screen, HopCheck))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HopCheck))
        assert app.current == "relays"
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, HopCheck))
        assert "[x] long silences" in await settled(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, KeptPrompt))
        assert [each.value for each in app.screen.query(Input)] == ["edge", "https://ed"]


async def test_a_check_goes_on_while_nobody_looks_and_its_end_is_said(desk: Desk) -> None:
    at_desk(desk, under_way(12))
    desk.values["jobs"] = jobs("running")
    async with console(desk) as (app, pilot):
        await pilot.press("H")
        assert "12 of 65 probes ended" in await settled(app, pilot)
        await pilot.press("escape")
        assert "The check goes on: H shows it" in await settled(app, pilot)
        desk.set(hopcheck=FOUND)
        await refreshed(app, pilot)
        text = _flat(await settled(app, pilot))
        assert "nginx removes X-Zs-Relay-Hop. 1 finding: H shows them." in text
        await pilot.press("H")
        assert "▸ ✗ error    Nginx removes X-Zs-Relay-Hop" in await settled(app, pilot)


async def test_cancelled_is_said_and_the_layers_are_back(desk: Desk) -> None:
    at_desk(desk, under_way(12))
    desk.values["jobs"] = jobs("running")
    desk.answer(CancelJob, Outcome(ok=True))
    async with console(desk) as (app, pilot):
        await pilot.press("H")
        assert "X cancel" in await settled(app, pilot)
        await pilot.press("X")
        await until(pilot, lambda: desk.sent == [CancelJob(id=JOB)])
        desk.set(hopcheck=IDLE, jobs=jobs("cancelled"))
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "▲ The check was cancelled: nothing is concluded from it." in text
        assert "LAYER" in text


async def test_a_refusal_of_the_node_is_one_sentence_with_the_next_step(desk: Desk) -> None:
    async def refuse(_command: Any) -> Outcome:
        raise LocalError("conflict", "a check is running already", "wait for it, or cancel its job")

    at_desk(desk, IDLE)
    desk.dispatcher.on(CheckHop, refuse)
    async with console(desk) as (app, pilot):
        await pilot.press("H", "r")
        await until(pilot, lambda: "A check is running already" in screen_text(app))
        text = _flat(await settled(app, pilot))
        assert "✗ A check is running already: wait for it, or cancel its job" in text


async def test_findings_are_gone_through_and_the_probes_behind_them_seen(desk: Desk) -> None:
    at_desk(desk, with_report(BAD))
    async with console(desk) as (app, pilot):
        await pilot.press("H", "n")
        text = await settled(app, pilot)
        assert "▸ ▲ warning  Cloudflare holds streams back" in text
        assert "Callers wait for whole answers" in text
        await pilot.press("tab")
        assert "▸ –          What was not tested" in await settled(app, pilot)
        await pilot.press("N", "shift+tab")
        assert "▸ ✗ error" in await settled(app, pilot)
        await pilot.press("end")
        assert "│ POST http://127.0.0.1:8080/v1/zs/relay" in await settled(app, pilot)
        await pilot.press("v", *["down"] * 4, "enter")
        text = await settled(app, pilot)
        assert "✗ failed  nginx  14 ms" in text
        await pilot.press("c")
        assert "400 relay_bad_target without the marker." in app.clipboard
        for expected in ("PROBE", "▸ ✗ error"):
            await pilot.press("escape")
            assert expected in await settled(app, pilot)
        await pilot.press("b")
        assert "esc back" in await settled(app, pilot)
        await pilot.press("escape", "n", "end")
        # Another result is read from its beginning.
        desk.set(hopcheck=with_report(later(BAD)))
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "▸ ✗ error" in text
        assert "layer       nginx" in text


async def test_what_the_node_saw_by_itself_comes_before_an_older_result(desk: Desk) -> None:
    at_desk(desk, replace(CLEAN, schedule=FAILING))
    async with console(desk, (120, 36)) as (app, pilot):
        assert "✗ the edge fails its check: H" in await settled(app, pilot)
        await pilot.press("H")
        assert "it failed: r tells what and where." in _flat(await settled(app, pilot))


async def test_the_node_goes_while_the_wizard_is_open(desk: Desk) -> None:
    at_desk(desk, FOUND)
    async with console(desk) as (app, pilot):
        await pilot.press("H")
        await settled(app, pilot)
        await desk.stop()
        await until(pilot, lambda: app.feed.link.state == "lost")
        text = _flat(await settled(app, pilot))
        assert "the node has stopped" in text
        # What was found can be read and copied all the same.
        assert "Nginx removes X-Zs-Relay-Hop" in text
        await pilot.press("r")
        assert "run: there is no node to ask" in _flat(await settled(app, pilot))
