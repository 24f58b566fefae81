"""How the wizard is opened, what it offers, and what it says where the check cannot be had."""

from __future__ import annotations

import asyncio

import pytest

from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.core.view.network import NetworkView
from relaydesk.surfaces.console.help import Help
from relaydesk.surfaces.console.keymap import read_keymap
from relaydesk.surfaces.console.panes.hopcheck.form import KeptPrompt
from relaydesk.surfaces.console.panes.hopcheck.screen import HopCheck
from tests.surfaces.console.panes.hopcheck.scenes import (
    BAD,
    IDLE,
    at_desk,
    with_report,
)
from tests.surfaces.console.stage import Desk, console, refreshed, screen_lines, screen_text, settled, until


def _flat(text: str) -> str:
    return " ".join(text.split())


async def test_off_the_network_and_without_a_public_url(desk: Desk) -> None:
    at_desk(desk, HopCheckView(suggested=IDLE.suggested[:1]))
    desk.values["network"] = NetworkView()
    async with console(desk) as (app, pilot):
        await pilot.press("H", "r")
        text = _flat(await settled(app, pilot))
        assert "This node takes no part in the relay network." in text
        assert "set RELAY_NETWORK=on" in text
        desk.set(network=NetworkView(on=True))
        await refreshed(app, pilot)
        text = _flat(await settled(app, pilot))
        assert "▲ This node advertises no URL: e gives the one that the world uses" in text
        await pilot.press("enter")
        assert "run: no public URL is known: e gives one" in _flat(await settled(app, pilot))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, KeptPrompt))
        await pilot.press(*"https://a.example", "enter")
        await until(pilot, lambda: isinstance(app.screen, HopCheck))
        assert "https://a.example" in await settled(app, pilot)


async def test_a_node_without_the_check(desk: Desk) -> None:
    desk.values.pop("hopcheck")
    desk.start()
    async with console(desk) as (app, pilot):
        await pilot.press("H")
        text = _flat(await settled(app, pilot))
        assert "This node does not know the check yet: it runs an older relaydesk." in text
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HopCheck))


async def test_a_console_that_may_only_look(desk: Desk) -> None:
    at_desk(desk, IDLE)
    async with console(desk, read_only=True) as (app, pilot):
        await pilot.press("H", "r")
        assert "run: this console is read-only" in _flat(await settled(app, pilot))
    assert desk.sent == []


async def test_its_keys_can_be_changed_and_help_names_them(desk: Desk) -> None:
    at_desk(desk, IDLE)
    keymap = read_keymap({"network.check": "O", "hopcheck.long": "L"})
    async with console(desk, keymap=keymap) as (app, pilot):
        await pilot.press("O", "L")
        assert "[x] long silences" in await settled(app, pilot)
        assert "L long" in screen_lines(app)[-1]
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Help))
        assert "Check my X-Zs-Relay-Hop passthrough" in screen_text(app)
        await pilot.press("end")
        text = _flat(await settled(app, pilot))
        assert "end the check that runs; nothing is concluded from it" in text
        assert "(not now: no check is running)" in text
        await pilot.press("escape", "q")
        await pilot.pause()
        assert app.return_code == 0


async def test_the_palette_and_the_footer_open_it(desk: Desk) -> None:
    at_desk(desk, IDLE)
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("7")
        footer = (await settled(app, pilot)).splitlines()[-1]
        await pilot.click("#footer", offset=(footer.index("check hop"), 0))
        await until(pilot, lambda: isinstance(app.screen, HopCheck))
        await settled(app, pilot)
        footer = screen_lines(app)[-1]
        await pilot.click(app.screen.query_one("#footer"), offset=(footer.index("close"), 0))
        await until(pilot, lambda: not isinstance(app.screen, HopCheck))
        await pilot.press("ctrl+p", *"passthrough")
        await until(pilot, lambda: "Network: check my X-Zs-Relay-Hop" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, HopCheck))


async def test_from_a_terminal_too_small_it_is_there_again(desk: Desk) -> None:
    at_desk(desk, with_report(BAD))
    async with console(desk) as (app, pilot):
        await pilot.press("H")
        before = await settled(app, pilot)
        await pilot.resize_terminal(40, 10)
        await asyncio.sleep(0.05)
        await pilot.press("n", "b")
        await pilot.resize_terminal(80, 24)
        assert await settled(app, pilot) == before


@pytest.mark.long
async def test_each_step_offers_what_can_be_done_there(desk: Desk) -> None:
    at_desk(desk, with_report(BAD))
    async with console(desk, (120, 36)) as (app, pilot):
        footers = []
        for keys in (("H",), ("v",), ("escape", "b")):
            await pilot.press(*keys)
            footers.append((await settled(app, pilot)).splitlines()[-1].split("  "))
    assert [[each.strip() for each in footer if each.strip()] for footer in footers] == [
        ["esc close", "r run again", "n next", "c copy", "b layers", "v probes", "? help", "q quit"],
        ["esc close", "c copy", "b layers", "? help", "q quit"],
        ["esc back", "enter run", "a add layer", "e edit", "x remove", "l long", "? help", "q quit"],
    ]
