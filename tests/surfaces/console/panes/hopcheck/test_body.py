"""Every step at every size, in ASCII, over every kind of node, and with text of somebody who means harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relaydesk.node_api import NodeApi
from relaydesk.scripted import Frame, ScriptedNode
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.panes.hopcheck.screen import HopCheck
from relaydesk.surfaces.control.client import RemoteNode
from relaydesk.surfaces.control.server import ControlServer
from tests.surfaces.console.panes.hopcheck.scenes import (
    BAD,
    CLEAN,
    IDLE,
    at_desk,
    hostile,
    under_way,
    with_report,
)
from tests.surfaces.console.panes.scenes import SIZES
from tests.surfaces.console.stage import Desk, console, refreshed, settled

JOB = "job_0123456789ab"


def _wizard(app: ConsoleApp) -> HopCheck:
    assert isinstance(app.screen, HopCheck)
    return app.screen


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_step_at_every_size(
    desk: Desk, same_screen: Callable[[str, str], None], size: tuple[int, int]
) -> None:
    name = f"{size[0]}x{size[1]}"
    at_desk(desk, IDLE)
    async with console(desk, size) as (app, pilot):
        await pilot.press("H")
        same_screen(f"hopcheck-layers-{name}", await settled(app, pilot))
        _wizard(app).memory.begin(JOB)
        for check, step in ((under_way(23), "probes"), (with_report(BAD), "result"), (CLEAN, "clean")):
            desk.set(hopcheck=check)
            await refreshed(app, pilot)
            if step == "probes":
                await pilot.press("v")
            same_screen(f"hopcheck-{step}-{name}", await settled(app, pilot))


async def test_text_of_somebody_else_stays_text(desk: Desk) -> None:
    at_desk(desk, hostile())
    async with console(desk, (60, 16)) as (app, pilot):
        await pilot.press("H")
        for keys in ((), ("end",), ("v", "enter"), ("escape", "b")):
            await pilot.press(*keys)
            lines = (await settled(app, pilot)).splitlines()
            assert len(lines) == 16
            assert all(line.isprintable() for line in lines)
        for y in (4, 6, 10):
            await pilot.click(offset=(12, y))
        assert app.is_running


@pytest.mark.long
async def test_ascii_draws_nothing_else(desk: Desk) -> None:
    at_desk(desk, with_report(BAD))
    async with console(desk, ascii=True) as (app, pilot):
        for keys in (("H",), ("n",), ("v",), ("escape", "b")):
            await pilot.press(*keys)
            assert (await settled(app, pilot)).isascii(), keys
        desk.set(hopcheck=under_way(23))
        await refreshed(app, pilot)
        await pilot.press("v")
        text = await settled(app, pilot)
        assert text.isascii()
        assert "* passed" in text


@pytest.mark.long
async def test_a_recording_and_a_node_behind_a_socket_show_the_same(desk: Desk, tmp_path: Any) -> None:
    at_desk(desk, with_report(BAD))
    first = (await desk.node.snapshot()).as_update()
    server = ControlServer(desk.node, tmp_path / "c.sock", desk.clock)
    await server.start()

    async def recording() -> NodeApi:
        return ScriptedNode((Frame(0, first),), desk.clock)

    async def seen(connect: Any) -> list[str]:
        async with console(desk, connect=connect) as (app, pilot):
            texts = []
            for keys in (("H",), ("v",), ("escape", "b")):
                await pilot.press(*keys)
                texts.append(await settled(app, pilot))
            # What may be done to a recording is another matter: the last line.
            return [text.rsplit("\n", 2)[0] for text in texts]

    async with RemoteNode(tmp_path / "c.sock") as remote:

        async def socket() -> NodeApi:
            return remote

        shown = [await seen(connect) for connect in (None, socket, recording)]
    await server.close()
    assert shown[0] == shown[1] == shown[2]
