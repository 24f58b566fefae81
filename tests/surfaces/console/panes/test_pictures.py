"""How the panes look, colours included: pictures of a recording, with clock and surroundings held still."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.pilot import Pilot

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import Access, Command, FitModel, Outcome, ShowAudit, ShowUsage
from relaydesk.core.view.node_view import Update
from relaydesk.core.view.sections import Section
from relaydesk.node_api import NodeApi
from relaydesk.scripted import Frame, ScriptedNode
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.keymap import Keymap
from relaydesk.surfaces.console.prefs import Prefs
from relaydesk.surfaces.console.session import Session
from tests.support.clock import FakeClock
from tests.surfaces.console.panes.scenes import AUDIT, EMPTY, REPORTS, USAGE, busy
from tests.surfaces.console.stage import NOW_MS, settled


class _Recorded(ScriptedNode):
    """A recording that also knows what the node said of each model."""

    async def call(self, command: Command) -> Outcome:
        if isinstance(command, FitModel) and command.name in REPORTS:
            return Outcome(ok=True, value=to_builtins(REPORTS[command.name]))
        if isinstance(command, ShowUsage):
            return Outcome(ok=True, value=USAGE)
        if isinstance(command, ShowAudit):
            return Outcome(ok=True, value={"records": [to_builtins(each) for each in AUDIT]})
        return await super().call(command)


def _app(values: dict[str, Any], theme: str = "dark", **given: Any) -> ConsoleApp:
    clock = FakeClock(NOW_MS)
    update = Update(1, **{name: Section("ready", NOW_MS, value) for name, value in values.items()})

    async def connect() -> NodeApi:
        return _Recorded((Frame(0, update),), clock, access=Access.WRITE)

    return ConsoleApp(Session(connect, clock, prefs=Prefs(theme), keymap=Keymap(), **given))


def _keys(*keys: str) -> Any:
    async def press(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, ConsoleApp)
        async with asyncio.timeout(5):
            while app.feed.link.state != "live":
                await asyncio.sleep(0.01)
        # The audit, questions and fit reports come by way of the node: before the next key, too.
        for pressed in (keys[:1], keys[1:]):
            await pilot.press(*pressed)
            await settled(app, pilot)

    return press


PICTURES = {
    "overview": (("1",), (120, 36)),
    "overview-80": (("1",), (80, 24)),
    "models": (("2", "down"), (120, 36)),
    "models-80": (("2",), (80, 24)),
    "requests": (("3", "o", "down"), (120, 36)),
    "requests-80": (("3",), (80, 24)),
    "keys": (("4", "down"), (120, 36)),
    "audit": (("6", "down"), (120, 36)),
    "relays": (("7", "slash", *"demoted", "enter"), (120, 36)),
    "relays-80": (("7",), (80, 24)),
    "hops": (("8", "end", "up"), (120, 36)),
    "ledger": (("9",), (120, 36)),
    "ledger-earnings": (("9", "v", "v", "v", "down", "down"), (120, 36)),
    "ledger-80": (("9", "v"), (80, 24)),
    "add-key": (("4", "a", "a", "n", "n", "tab", "2", "0", "0", "k"), (80, 24)),
    "remove": (("2", "down", "x"), (80, 24)),
    "pull": (("2", "a", "s", "m"), (80, 24)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_dark(name: str, snap_compare: Any) -> None:
    keys, size = PICTURES[name]
    assert snap_compare(_app(busy()), run_before=_keys(*keys), terminal_size=size)


@pytest.mark.parametrize("theme", ["light", "terminal"])
@pytest.mark.parametrize("name", ["overview", "models"])
def test_other_themes(name: str, theme: str, snap_compare: Any) -> None:
    keys, size = PICTURES[name]
    assert snap_compare(_app(busy(), theme), run_before=_keys(*keys), terminal_size=size)


def test_ascii(snap_compare: Any) -> None:
    assert snap_compare(_app(busy(), ascii=True), run_before=_keys("1"), terminal_size=(80, 24))


def test_no_model_yet(snap_compare: Any) -> None:
    assert snap_compare(
        _app(busy() | EMPTY | {"jobs": busy()["jobs"]}), run_before=_keys("1"), terminal_size=(80, 24)
    )


def test_without_colours(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(_app(busy()), run_before=_keys("2", "down"), terminal_size=(120, 36))
