"""The log pane through its keys."""

from __future__ import annotations

import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import LogLine, LogView
from tests.surfaces.console.stage import NOW_MS, Desk, console, refreshed, screen_text, settled

REQUEST = "done 200 model=smollm2 key=default tokens=28+41 first_token_ms=12 total_ms=900 req_8f2c01"


async def test_a_line_that_the_level_hides_stays_open_and_says_so(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("5", "home", "enter")
        assert "node 5f2d7c0e9a41b3d8 is ready" in await settled(app, pilot)
        await pilot.press("l")
        text = await settled(app, pilot)
        assert "The list shows warning and worse, so not this line. l shows more." in text
        assert "node 5f2d7c0e9a41b3d8 is ready" in text
        await pilot.press("escape")
        text = await settled(app, pilot)
        assert "Only warning and worse, 5 lines left out: esc shows all." in text
        assert "is ready" not in text
        await pilot.press("escape")
        assert "smollm2 is loading" in await settled(app, pilot)


async def test_a_level_without_a_line_says_so_in_list_and_detail(desk: Desk) -> None:
    desk.values["log"] = LogView((LogLine(NOW_MS, "info", "engine.pool", safe_text("smollm2 is warm")),))
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("5", "l")
        assert (await settled(app, pilot)).count("No line is warning or worse.") == 2
        await pilot.press("escape")
        assert "No line is" not in await settled(app, pilot)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_of_a_request_outcome_status_and_model_are_seen(desk: Desk, size: tuple[int, int]) -> None:
    desk.values["log"] = LogView((LogLine(NOW_MS, "info", "engine.gateway.journal", safe_text(REQUEST)),))
    async with console(desk, size) as (app, pilot):
        await pilot.press("5")
        (line,) = [line for line in (await settled(app, pilot)).splitlines() if " requests " in line]
        assert "done 200 model=smollm2" in line.partition("│")[0]


async def test_the_list_follows_until_somebody_looks_elsewhere(desk: Desk) -> None:
    lines = desk.values["log"].lines
    async with console(desk) as (app, pilot):
        await pilot.press("5")
        await settled(app, pilot)
        for at, keys in ((1, ()), (2, ("up",)), (3, ("end",))):
            await pilot.press(*keys)
            more = LogLine(NOW_MS + at, "info", "engine.pool", safe_text(f"line {at}"))
            lines = (*lines, more)
            desk.set(log=LogView(lines))
            await refreshed(app, pilot)
            await settled(app, pilot)
            table = app.pane.table if app.pane is not None else None
            assert table is not None
            assert table.cursor_row is not None
            assert (table.cursor_row.key == f"{more.at_ms}.0") == (at != 2), screen_text(app)
