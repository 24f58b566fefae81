"""How the wizard looks, colours included: what is checked, half-way, a stripping nginx, and a clean edge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.pilot import Pilot

from relaydesk.core.commands import Access
from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.core.view.node_view import Update
from relaydesk.core.view.sections import Section
from relaydesk.node_api import NodeApi
from relaydesk.scripted import Frame, ScriptedNode
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.session import Session
from tests.support.clock import FakeClock
from tests.surfaces.console.panes.hopcheck.scenes import (
    BAD,
    CLEAN,
    FOUND,
    IDLE,
    NOW_MS,
    STRIPPED,
    replace,
    under_way,
    with_report,
)
from tests.surfaces.console.panes.network_scenes import sections
from tests.surfaces.console.panes.scenes import busy
from tests.surfaces.console.stage import settled


def _app(check: HopCheckView, **given: Any) -> ConsoleApp:
    clock = FakeClock(NOW_MS)
    values = busy() | sections(NOW_MS) | {"hopcheck": check}
    update = Update(1, **{name: Section("ready", NOW_MS, value) for name, value in values.items()})

    async def connect() -> NodeApi:
        return ScriptedNode((Frame(0, update),), clock, access=Access.WRITE)

    return ConsoleApp(Session(connect, clock, **given))


def _keys(*keys: str) -> Any:
    async def press(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, ConsoleApp)
        async with asyncio.timeout(5):
            while app.feed.link.state != "live":
                await asyncio.sleep(0.01)
        await pilot.press("7", "H", *keys)
        await settled(app, pilot)

    return press


HALF_WAY = replace(under_way(38), findings=(STRIPPED,))
PICTURES = {
    "layers": (IDLE, (), (80, 24)),
    "half-way": (HALF_WAY, ("down", "down", "down"), (120, 36)),
    "half-way-80": (HALF_WAY, (), (80, 24)),
    "stripped": (FOUND, (), (80, 24)),
    "two-findings": (with_report(BAD), ("n",), (120, 36)),
    "clean": (CLEAN, (), (80, 24)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, snap_compare: Any) -> None:
    check, keys, size = PICTURES[name]
    assert snap_compare(_app(check), run_before=_keys(*keys), terminal_size=size)
