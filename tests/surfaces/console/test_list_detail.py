"""List and detail: one at a time below 120 columns, side by side from there on."""

from __future__ import annotations

import pytest

from relaydesk.surfaces.console.list_detail import ListDetail
from tests.surfaces.console.stage import Desk, console, screen_lines, settled


@pytest.mark.parametrize("width", [60, 119, 120])
async def test_enter_opens_and_escape_goes_back(desk: Desk, width: int) -> None:
    split = width >= 120
    async with console(desk, (width, 24)) as (app, pilot):
        await app.show_pane("log")
        await settled(app, pilot)
        assert app.pane is not None
        both = app.pane.query_one(ListDetail)
        detail = both.query_one("#detail")
        assert (both.split, both.detail_shown, detail.display) == (split, split, split)
        assert "enter detail" in screen_lines(app)[-1]
        await pilot.press("enter")
        text = await settled(app, pilot)
        assert app.focused is detail
        assert detail.display
        assert ("TIME" in text) is split
        assert "esc back" in screen_lines(app)[-1]
        await pilot.press("escape")
        text = await settled(app, pilot)
        assert app.focused is both.list
        assert detail.display is split
        assert "TIME" in text
        assert "enter detail" in screen_lines(app)[-1]


async def test_a_resize_keeps_what_is_open(desk: Desk) -> None:
    async with console(desk, (80, 24)) as (app, pilot):
        await app.show_pane("log")
        await settled(app, pilot)
        await pilot.press("enter")
        await settled(app, pilot)
        await pilot.resize_terminal(120, 36)
        assert "TIME" in await settled(app, pilot)
        await pilot.resize_terminal(80, 24)
        assert "TIME" not in await settled(app, pilot)
        await pilot.press("escape")
        assert "TIME" in await settled(app, pilot)
