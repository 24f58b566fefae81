"""The overview through its keys."""

from __future__ import annotations

import msgspec

from relaydesk.core.commands import Outcome, PullModel
from relaydesk.core.view.sections import HealthView, JobsView
from relaydesk.surfaces.console.panes.overview.pane import OverviewPane
from tests.surfaces.console.panes.scenes import EMPTY, PULL
from tests.surfaces.console.stage import Desk, console, refreshed, screen_text, settled, until


async def test_it_is_the_first_pane(desk: Desk) -> None:
    async with console(desk) as (app, _):
        assert isinstance(app.pane, OverviewPane)


async def test_no_model_yet_and_one_key_later_it_is_on_its_way(desk: Desk) -> None:
    desk.values |= EMPTY
    desk.answer(PullModel, Outcome(ok=True, job="job_1"))
    async with console(desk) as (app, pilot):
        assert "No model is registered yet." in await settled(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: bool(desk.sent))
        assert desk.sent == [PullModel(reference="smollm2")]
        desk.set(jobs=JobsView((PULL,)))
        await refreshed(app, pilot)
        assert "downloading, 40 %" in await settled(app, pilot)
        await pilot.press("a")
        await pilot.pause()
        assert desk.sent == [PullModel(reference="smollm2")]


async def test_with_a_model_the_key_says_why_it_does_nothing(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        await pilot.press("a")
        assert "there is a model already" in await settled(app, pilot)
        assert desk.sent == []


async def test_the_rate_is_written_down_by_the_clock(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        pane = app.pane
        assert isinstance(pane, OverviewPane)
        assert pane.history.values == (41.7,)
        desk.clock.advance(4)
        desk.set(health=HealthView(tokens_per_s=12.5))
        await refreshed(app, pilot)
        assert pane.history.values == (41.7, None, 12.5)
        app.feed.pause(True)
        desk.clock.advance(2)
        pane._sample()
        assert pane.history.values == (41.7, None, 12.5)


async def test_another_size_is_another_picture(desk: Desk) -> None:
    async with console(desk, (80, 24)) as (app, pilot):
        assert "╭ Models" not in await settled(app, pilot)
        await pilot.resize_terminal(120, 36)
        assert "╭ Models" in await settled(app, pilot)
        await pilot.resize_terminal(60, 16)
        await settled(app, pilot)
        assert "╭" not in screen_text(app)


async def test_what_a_short_terminal_has_no_room_for_is_scrolled_to(desk: Desk) -> None:
    async with console(desk, (60, 16)) as (app, pilot):
        assert "other programs" not in await settled(app, pilot)
        await pilot.press("pagedown")
        assert "other programs" in await settled(app, pilot)


async def test_a_first_model_is_offered_where_there_is_none(desk: Desk) -> None:
    async with console(desk) as (app, pilot):
        assert "a pull smollm2" not in await settled(app, pilot)
        models = desk.values["models"]
        desk.set(models=msgspec.structs.replace(models, models=()))
        await refreshed(app, pilot)
        assert "a pull smollm2" in await settled(app, pilot)
