"""Every pane in every state at every size, as text; and all of them over each kind of node."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import FitModel, Outcome, ShowUsage
from relaydesk.node_api import NodeApi
from relaydesk.scripted import Frame, ScriptedNode
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.registry import PANES
from relaydesk.surfaces.console.session import Session
from relaydesk.surfaces.control.client import RemoteNode
from relaydesk.surfaces.control.server import ControlServer
from tests.surfaces.console.panes.scenes import EMPTY, FAILED, MAIN, REPORTS, SIZES, USAGE, busy, hostile
from tests.surfaces.console.stage import Desk, console, refreshed, screen_lines, settled, until

DIGITS = {spec.id: str(spec.digit) for spec in PANES}
# What each pane's last value says; most name the model.
_KEPT = {"keys": "default", "relays": "this node", "hops": "no target", "ledger": "ann, autumn"}
# One size in the plain run, the others with the long tests.
FOREIGN = [
    pytest.param(size, id=f"{size[0]}x{size[1]}", marks=() if size == (80, 24) else pytest.mark.long)
    for size in SIZES
]
Same = Callable[[str, str], None]


def _answer_fits(desk: Desk) -> None:
    async def handle(command: FitModel) -> Outcome:
        return Outcome(ok=True, value=to_builtins(REPORTS[command.name]))

    desk.dispatcher.on(FitModel, handle)
    desk.answer(ShowUsage, Outcome(ok=True, value=USAGE))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_with_data(desk: Desk, same_screen: Same, size: tuple[int, int]) -> None:
    desk.values |= busy()
    _answer_fits(desk)
    name = f"{size[0]}x{size[1]}"
    async with console(desk, size) as (app, pilot):
        for pane in MAIN:
            await pilot.press(DIGITS[pane])
            same_screen(f"{pane}-{name}", await settled(app, pilot))
            if pane == "overview":
                continue
            await pilot.press("down", "enter")
            same_screen(f"{pane}-detail-{name}", await settled(app, pilot))
            await pilot.press("escape")
        await _stale(desk, same_screen, app, pilot, name)


async def _stale(desk: Desk, same_screen: Same, app: Any, pilot: Any, name: str) -> None:
    await desk.stop()
    await until(pilot, lambda: app.feed.link.state == "lost")
    for pane in MAIN:
        await pilot.press(DIGITS[pane])
        # How long until the next try depends on when it is looked at.
        text = await settled(app, pilot)
        same_screen(
            f"{pane}-stale-{name}", re.sub(r"no node, (next try within \d+ s|trying)", "no node", text)
        )


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_with_nothing(desk: Desk, same_screen: Same, size: tuple[int, int]) -> None:
    desk.values |= EMPTY
    name = f"{size[0]}x{size[1]}"
    async with console(desk, size) as (app, pilot):
        for pane in MAIN:
            await pilot.press(DIGITS[pane])
            same_screen(f"{pane}-empty-{name}", await settled(app, pilot))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_what_cannot_be_read(desk: Desk, same_screen: Same, size: tuple[int, int]) -> None:
    desk.values |= dict.fromkeys(MAIN.values(), FAILED)
    name = f"{size[0]}x{size[1]}"
    async with console(desk, size) as (app, pilot):
        for pane in MAIN:
            await pilot.press(DIGITS[pane])
            same_screen(f"{pane}-failed-{name}", await settled(app, pilot))


@pytest.mark.parametrize("pane", MAIN)
async def test_what_cannot_be_read_any_more_keeps_its_last_value(desk: Desk, pane: str) -> None:
    desk.values |= busy()
    async with console(desk) as (app, pilot):
        await pilot.press(DIGITS[pane])
        await settled(app, pilot)
        desk.set(**{MAIN[pane]: FAILED})
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "the database cannot be read: the disk is full" in " ".join(text.split())
        assert _KEPT.get(pane, "smollm2") in text


@pytest.mark.parametrize("size", FOREIGN)
async def test_text_of_somebody_else_stays_text(desk: Desk, size: tuple[int, int]) -> None:
    desk.values |= hostile()
    async with console(desk, size) as (app, pilot):
        for pane in MAIN:
            await pilot.press(DIGITS[pane])
            await settled(app, pilot)
            # Beside the list the detail follows; below it one is opened. 4 is the row with a link in it.
            for keys in (("down",) * 4, ("enter",), ("escape", "end")):
                await pilot.press(*keys)
                lines = screen_lines(app)
                assert len(lines) == size[1]
                assert all(line.isprintable() for line in lines)
                assert "\u202e" not in "".join(lines)
            # What stands in brackets is no link: a click leaves the console open.
            for y in (4, 6, 10):
                await pilot.click(offset=(12, y))
        assert app.is_running


async def test_a_recording_and_a_node_behind_a_socket_show_the_same(desk: Desk, tmp_path: Path) -> None:
    desk.values |= busy()
    _answer_fits(desk)
    first = (await desk.node.snapshot()).as_update()
    server = ControlServer(desk.node, tmp_path / "c.sock", desk.clock)
    await server.start()

    async def recording() -> NodeApi:
        return ScriptedNode((Frame(0, first),), desk.clock)

    async with RemoteNode(tmp_path / "c.sock") as remote:

        async def socket() -> NodeApi:
            return remote

        seen = [[await _all_panes(desk, connect)] for connect in (None, socket, recording)]
    await server.close()
    assert seen[0] == seen[1] == seen[2]


async def _all_panes(desk: Desk, connect: Any) -> list[str]:
    async with console(desk, connect=connect) as (app, pilot):
        texts = []
        for pane in MAIN:
            await pilot.press(DIGITS[pane])
            texts.append(await settled(app, pilot))
        return texts


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_before_the_first_answer(desk: Desk, same_screen: Same, size: tuple[int, int]) -> None:
    async def never() -> NodeApi:
        await asyncio.Event().wait()
        raise AssertionError

    app = ConsoleApp(Session(never, desk.clock))
    async with app.run_test(size=size) as pilot:
        for pane in MAIN:
            await pilot.press(DIGITS[pane])
            # The same for all of them.
            tabs, *text = (await settled(app, pilot)).splitlines()[1:-1]
            assert f" {DIGITS[pane]} " in tabs
            same_screen(f"loading-{size[0]}x{size[1]}", "\n".join(text).strip() + "\n")
