"""The frame's own actions where the console's tests do not pass by."""

from __future__ import annotations

from relaydesk.surfaces.console.bindings import FRAME
from relaydesk.surfaces.console.frame_actions import FrameActions
from relaydesk.surfaces.console.pane import Pane
from tests.surfaces.console.panes.scenes import EMPTY
from tests.surfaces.console.stage import Desk, console, screen_text, settled


def test_each_row_of_the_frame_is_done_by_it_or_by_every_pane() -> None:
    rows = [action for action in FRAME if action.command is None]
    assert [
        row.id for row in rows if not hasattr(FrameActions, row.method) and not hasattr(Pane, row.method)
    ] == []


async def test_a_question_that_has_no_room_is_asked_anew_in_another_terminal(desk: Desk) -> None:
    stopped: list[int] = []
    async with console(desk, (50, 12), stop=lambda: stopped.append(1)) as (app, pilot):
        await pilot.press("q")
        assert "q once more stops it" in " ".join(screen_text(app).split())
        await pilot.resize_terminal(52, 12)
        assert "q once more" not in await settled(app, pilot)
        await pilot.press("q")
        assert stopped == []
        await pilot.press("q")
        assert stopped == [1]


async def test_nothing_selected_is_nothing_copied(desk: Desk) -> None:
    desk.values |= EMPTY
    async with console(desk) as (app, pilot):
        await pilot.press("3")
        await settled(app, pilot)
        app.action_run("list.copy")
        await pilot.pause()
        assert "Nothing is selected" in screen_text(app)
