"""The keys pane through its keys."""

from __future__ import annotations

from relaydesk.core.codec import fault_view
from relaydesk.core.commands import Outcome, RotateDefaultKey, ShowDefaultKey
from relaydesk.core.errors import Fault
from relaydesk.surfaces.console.panes.keys.reveal import Reveal
from tests.surfaces.console.stage import Desk, console, screen_text, settled, until

SECRET = "9f2c41d07be8" * 5


async def test_shown_once_on_a_card_and_nowhere_else(desk: Desk) -> None:
    desk.answer(ShowDefaultKey, Outcome(ok=True, value={"key": SECRET}))
    async with console(desk) as (app, pilot):
        await pilot.press("4")
        assert SECRET not in await settled(app, pilot)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, Reveal))
        assert SECRET in screen_text(app)
        await pilot.press("escape")
        assert SECRET not in await settled(app, pilot)


async def test_rotating_asks_with_another_key_and_shows_the_new_one(desk: Desk) -> None:
    desk.answer(RotateDefaultKey, Outcome(ok=True, value={"key": SECRET}))
    async with console(desk) as (app, pilot):
        await pilot.press("4", "r")
        assert "every client that uses it gets 401" in await settled(app, pilot)
        await pilot.press("r", "enter")
        await pilot.pause()
        assert desk.sent == []
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Reveal))
        assert desk.sent == [RotateDefaultKey()]
        assert "The old one is refused from now on" in screen_text(app)


async def test_a_refusal_is_a_sentence_and_no_card(desk: Desk) -> None:
    fault = fault_view(Fault("conflict", "the key is set by RELAY_API_KEY", "change it there"))
    desk.answer(RotateDefaultKey, Outcome(ok=False, fault=fault))
    async with console(desk) as (app, pilot):
        await pilot.press("4", "r", "y")
        await until(pilot, lambda: bool(desk.sent))
        text = " ".join((await settled(app, pilot)).split())
        assert "the key is set by RELAY_API_KEY" in text
        assert not isinstance(app.screen, Reveal)


async def test_who_may_only_look_does_not_see_it(desk: Desk) -> None:
    desk.answer(ShowDefaultKey, Outcome(ok=True, value={"key": SECRET}))
    async with console(desk, read_only=True) as (app, pilot):
        await pilot.press("4", "v")
        assert "read-only" in await settled(app, pilot)
        assert desk.sent == []


async def test_the_way_to_a_client_stands_below_the_list_and_once(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("4")
        assert (await settled(app, pilot)).count("OPENAI_BASE_URL") == 1
        below = app.screen.query_one("#client")
        assert below.display
        await pilot.press("enter")
        assert (await settled(app, pilot)).count("OPENAI_BASE_URL") == 1
        assert not below.display
        await pilot.press("escape")
        assert (await settled(app, pilot)).count("OPENAI_BASE_URL") == 1
        assert below.display
