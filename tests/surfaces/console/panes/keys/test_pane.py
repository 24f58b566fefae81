"""The keys pane through its keys."""

from __future__ import annotations

import msgspec

from relaydesk.core.codec import fault_view
from relaydesk.core.commands import (
    AddKey,
    Outcome,
    RemoveKey,
    RotateDefaultKey,
    SetKey,
    ShowDefaultKey,
    ShowUsage,
)
from relaydesk.core.errors import Fault
from relaydesk.core.view.sections import KeysView
from relaydesk.surfaces.console.ask import Prompt
from relaydesk.surfaces.console.panes.keys.reveal import Reveal
from tests.surfaces.console.panes.scenes import KEYS, TODAY, USAGE
from tests.surfaces.console.stage import Desk, console, refreshed, screen_text, settled, until

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
        await settled(app, pilot)
        await pilot.press("end")
        assert (await settled(app, pilot)).count("OPENAI_BASE_URL") == 1
        assert not below.display
        await pilot.press("escape")
        assert (await settled(app, pilot)).count("OPENAI_BASE_URL") == 1
        assert below.display


def _keys(desk: Desk) -> None:
    desk.values["keys"] = KEYS
    desk.answer(ShowUsage, Outcome(ok=True, value=USAGE))


async def test_a_key_is_made_from_a_form_and_its_secret_closes_on_escape_alone(desk: Desk) -> None:
    _keys(desk)
    desk.answer(AddKey, Outcome(ok=True, value={"name": "eve", "key": SECRET}))
    async with console(desk) as (app, pilot):
        await pilot.press("4", "a", "enter")
        # Without a name there is nothing to do.
        assert isinstance(app.screen, Prompt)
        await pilot.press(*"eve", "tab", *"200k", "tab", *"2", "tab", "tab", *"smollm2")
        text = " ".join((await settled(app, pilot)).split())
        line = "relaydesk key add eve --tokens-per-day 200000 --max-concurrency 2 --model smollm2"
        assert line in text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Reveal))
        limits = {"tokens_per_day": 200_000, "max_concurrency": 2, "models": ["smollm2"]}
        assert desk.sent == [AddKey(name="eve", settings=limits)]
        shown = " ".join((await settled(app, pilot)).split())
        assert SECRET in shown
        assert "This is the only time it is shown" in shown
        await pilot.press("q", "enter")
        assert SECRET in await settled(app, pilot)
        await pilot.press("c")
        assert app.clipboard == SECRET
        await pilot.press("escape")
        assert SECRET not in await settled(app, pilot)


async def test_what_the_node_refuses_is_asked_again_as_it_was_typed(desk: Desk) -> None:
    _keys(desk)
    fault = fault_view(Fault("conflict", "there is a key ann already", "choose another name"))
    desk.answer(AddKey, Outcome(ok=False, fault=fault))
    async with console(desk) as (app, pilot):
        await pilot.press("4", "a", *"ann", "tab", *"5k", "enter")
        await until(pilot, lambda: "there is a key ann already. choose another name" in screen_text(app))
        assert isinstance(app.screen, Prompt)
        assert app.screen.answers[:2] == ("ann", "5k")


async def test_only_what_differs_is_changed(desk: Desk) -> None:
    _keys(desk)
    desk.answer(SetKey, Outcome(ok=True, value={}))
    async with console(desk) as (app, pilot):
        await pilot.press("4", "w")
        assert "the default key has no limits" in " ".join((await settled(app, pilot)).split())
        await pilot.press("down", "w", "enter")
        await until(pilot, lambda: "nothing is different" in screen_text(app))
        await pilot.press("ctrl+u", *"1000", "enter")
        await until(pilot, lambda: bool(desk.sent))
        assert desk.sent[-1] == SetKey(name="ann", settings={"tokens_per_day": 1000})
        await until(pilot, lambda: "change ann: done" in screen_text(app))


async def test_revoking_asks_with_another_key_and_says_what_is_under_way(desk: Desk) -> None:
    _keys(desk)
    desk.answer(RemoveKey, Outcome(ok=True, value={"name": "ann", "running": 1}))
    async with console(desk) as (app, pilot):
        await pilot.press("4", "x")
        assert "the default key is not revoked" in " ".join((await settled(app, pilot)).split())
        await pilot.press("down", "x")
        text = " ".join((await settled(app, pilot)).split())
        assert "Revoke ann?" in text
        assert "401 from now on; its 1 request under way may end" in text
        assert "relaydesk key rm ann" in text
        await pilot.press("x", "enter")
        await pilot.pause()
        assert not any(isinstance(each, RemoveKey) for each in desk.sent)
        await pilot.press("y")
        await until(pilot, lambda: RemoveKey(name="ann") in desk.sent)


async def test_what_is_used_is_seen_to_move_and_usage_is_fetched_once(desk: Desk) -> None:
    _keys(desk)
    async with console(desk) as (app, pilot):
        await pilot.press("4", "down")
        assert "91.3 k" in await settled(app, pilot)
        assert desk.sent == []
        more = msgspec.structs.replace(KEYS.keys[1], used=120_000, reserved=0)
        desk.set(keys=KeysView((KEYS.keys[0], more)))
        await refreshed(app, pilot)
        assert "120.0 k" in await settled(app, pilot)
        await pilot.press("enter")
        assert "120.0 k of 200.0 k tokens today" in await settled(app, pilot)
        desk.set(keys=KEYS)
        await refreshed(app, pilot)
        await settled(app, pilot)
        assert [type(each) for each in desk.sent] == [ShowUsage]
        assert desk.sent[0].since_day == TODAY - 29  # type: ignore[attr-defined]


async def test_usage_that_failed_is_asked_for_when_the_detail_is_opened_again(desk: Desk) -> None:
    desk.values["keys"] = KEYS
    fault = fault_view(Fault("storage_failed", "the database cannot be read", "make room"))
    desk.answer(ShowUsage, Outcome(ok=False, fault=fault))
    async with console(desk) as (app, pilot):
        await pilot.press("4", "down", "enter")
        assert "the database cannot be read" in await settled(app, pilot)
        assert len(desk.sent) == 1
        await pilot.press("escape", "enter")
        await settled(app, pilot)
        assert len(desk.sent) == 2
