"""The requests pane through its keys."""

from __future__ import annotations

import msgspec

from relaydesk.surfaces.console.pane import Pane
from tests.surfaces.console.panes.scenes import EMPTY, FAILURE, busy
from tests.surfaces.console.stage import NOW_MS, Desk, console, refreshed, screen_lines, settled


def _ids(pane: Pane | None) -> list[str]:
    assert pane is not None
    assert pane.table is not None
    return [row.key for row in pane.table.view]


async def test_the_slowest_is_one_key_away(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("3", "o")
        await settled(app, pilot)
        assert _ids(app.pane) == ["req_01hq6", "req_01hq7", "req_01hq8"]
        assert screen_lines(app)[3].startswith(" ● done")
        await pilot.press("enter")
        assert "◂ most" in await settled(app, pilot)
        await pilot.press("escape", "o")
        await settled(app, pilot)
        assert _ids(app.pane) == ["req_01hq7", "req_01hq8", "req_01hq6"]


async def test_failures_alone_and_an_end_to_them(desk: Desk) -> None:
    desk.values |= busy()
    async with console(desk) as (app, pilot):
        await pilot.press("3", "e")
        await settled(app, pilot)
        assert _ids(app.pane) == [FAILURE.id]
        await pilot.press("e")
        await settled(app, pilot)
        assert len(_ids(app.pane)) == 4
        desk.set(requests=msgspec.structs.replace(desk.values["requests"], recent=()))
        await pilot.press("e")
        await refreshed(app, pilot)
        assert "Nothing has failed." in await settled(app, pilot)


async def test_totals_of_those_under_way_grow(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("3")
        assert "2400 ms" in await settled(app, pilot)
        desk.clock.advance(1)
        assert app.pane is not None
        app.pane.tick(NOW_MS + 1000)
        text = await settled(app, pilot)
        assert "2400 ms" not in text
        assert "3400 ms" in text


async def test_the_detail_follows_what_happens_to_its_request(desk: Desk) -> None:
    async with console(desk, (120, 36)) as (app, pilot):
        await pilot.press("3")
        assert "so far" in await settled(app, pilot)
        first = desk.values["requests"].in_flight[0]
        ended = msgspec.structs.replace(first, state="done", total_ms=5_000, finish_reasons=("length",))
        desk.set(requests=msgspec.structs.replace(desk.values["requests"], in_flight=(), recent=(ended,)))
        await refreshed(app, pilot)
        text = await settled(app, pilot)
        assert "so far" not in text
        assert "ended by    length" in text


async def test_copying_takes_the_id(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("3", "c")
        await pilot.pause()
        assert app.clipboard == "req_01hq7"


async def test_nothing_asked_says_what_a_client_needs(desk: Desk) -> None:
    desk.values |= {"requests": EMPTY["requests"]}
    async with console(desk) as (app, pilot):
        await pilot.press("3")
        text = await settled(app, pilot)
        assert "Nobody has asked anything yet." in text
        assert "relaydesk token --api" in " ".join(text.split())


async def test_that_failures_alone_are_shown_is_said_and_esc_ends_it(desk: Desk) -> None:
    desk.values |= busy()
    async with console(desk) as (app, pilot):
        await pilot.press("3", "e")
        text = await settled(app, pilot)
        assert "Only what failed or was broken off, 3 left out: esc shows all." in text
        assert "smollm2" not in text
        await pilot.press("escape")
        text = await settled(app, pilot)
        assert "Only what failed" not in text
        assert "smollm2" in text
