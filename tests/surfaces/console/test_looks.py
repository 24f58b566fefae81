from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.surfaces.console.prefs import Prefs, load_prefs, save_prefs
from relaydesk.surfaces.console.themes import DARK, LIGHT, TERMINAL
from tests.surfaces.console.stage import Desk, console, screen_text


async def test_theme_and_rate_are_those_of_the_last_time(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "console.toml"

    def keep(chosen: Prefs) -> str:
        return save_prefs(path, chosen)

    async with console(desk, keep=keep) as (app, pilot):
        assert (app.theme, app.feed.rate_hz) == (DARK.name, 2.0)
        await pilot.press("t", "plus", "plus")
        assert (app.theme, app.feed.rate_hz) == (LIGHT.name, 4.0)
    async with console(desk, prefs=load_prefs(path), keep=keep) as (app, pilot):
        assert (app.theme, app.feed.rate_hz) == (LIGHT.name, 4.0)
        await pilot.press("t", "minus")
        assert (app.theme, app.feed.rate_hz) == (TERMINAL, 2.0)
        await pilot.press("t")
        assert app.theme == DARK.name
    assert load_prefs(path) == Prefs("dark", 2.0)


async def test_what_cannot_be_kept_is_said_once(desk: Desk) -> None:
    asked: list[Prefs] = []

    def keep(chosen: Prefs) -> str:
        asked.append(chosen)
        return "no room for the file"

    async with console(desk, keep=keep) as (app, pilot):
        await pilot.press("t", "t", "plus")
        await pilot.pause()
        assert screen_text(app).count("no room for the file") == 1
        assert (app.theme, app.feed.rate_hz) == (TERMINAL, 4.0)
    assert asked == [Prefs("light")]


async def test_a_file_that_is_wrong_is_said_once(desk: Desk) -> None:
    async with console(desk, prefs=Prefs(problem="console.toml: theme cannot be used")) as (app, pilot):
        await pilot.pause()
        assert screen_text(app).count("theme cannot be used") == 1


async def test_without_colours_there_is_one_theme(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    kept: list[Prefs] = []

    def keep(chosen: Prefs) -> str:
        kept.append(chosen)
        return ""

    async with console(desk, prefs=Prefs("light"), keep=keep) as (app, pilot):
        assert app.theme == TERMINAL
        await pilot.press("t")
        await pilot.pause()
        assert app.theme == TERMINAL
        assert "NO_COLOR is set" in screen_text(app)
    assert kept == []
