"""The audit pane through its keys: states, filters, and how often it asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.core.codec import fault_view, to_builtins
from relaydesk.core.commands import Outcome, ShowAudit
from relaydesk.core.errors import Fault
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.panes.audit.pane import NEWEST
from tests.surfaces.console.panes.scenes import AUDIT, hostile_audit
from tests.surfaces.console.stage import Desk, console, screen_lines, screen_text, settled, until

Same = Callable[[str, str], None]
SIZES = [
    (80, 24),
    pytest.param((60, 16), marks=pytest.mark.long),
    pytest.param((120, 36), marks=pytest.mark.long),
]


class Kept:
    """Records that a desk answers with, and what it was asked."""

    def __init__(self, desk: Desk, records: tuple[AuditRecord, ...] = AUDIT) -> None:
        self.records = records
        self.asked: list[ShowAudit] = []
        self.fault: Fault | None = None
        desk.dispatcher.on(ShowAudit, self._answer)

    async def _answer(self, command: ShowAudit) -> Outcome:
        self.asked.append(command)
        if self.fault is not None:
            return Outcome(ok=False, fault=fault_view(self.fault))
        found = [to_builtins(each) for each in self.records if command.wanted.matches(each)]
        return Outcome(ok=True, value={"records": found})


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_screens(desk: Desk, same_screen: Same, size: tuple[int, int]) -> None:
    kept, name = Kept(desk), f"{size[0]}x{size[1]}"
    async with console(desk, size) as (app, pilot):
        await pilot.press("6")
        same_screen(f"audit-{name}", await settled(app, pilot))
        await pilot.press("down", "enter")
        same_screen(f"audit-detail-{name}", await settled(app, pilot))
        await pilot.press("escape", "u", "e")
        same_screen(f"audit-filter-{name}", await settled(app, pilot))
        await pilot.press("escape")
        kept.fault = Fault(
            "storage_failed", "the audit cannot be read: the disk is full", "make room on the disk"
        )
        app.pane.tick(desk.clock.wall_ms() + 2_000)  # type: ignore[union-attr]
        same_screen(f"audit-failed-{name}", await settled(app, pilot))
        await desk.stop()
        await until(pilot, lambda: app.feed.link.state == "lost")
        assert "as of 15:09:26: the node has stopped" in " ".join((await settled(app, pilot)).split())


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_with_nothing_and_never_read(desk: Desk, same_screen: Same, size: tuple[int, int]) -> None:
    kept, name = Kept(desk, ()), f"{size[0]}x{size[1]}"
    kept.fault = Fault(
        "storage_failed", "the audit cannot be read: the disk is full", "make room on the disk"
    )
    async with console(desk, size) as (app, pilot):
        await pilot.press("6")
        same_screen(f"audit-never-{name}", await settled(app, pilot))
        kept.fault = None
        app.pane.tick(desk.clock.wall_ms() + 2_000)  # type: ignore[union-attr]
        same_screen(f"audit-empty-{name}", await settled(app, pilot))


async def test_it_asks_while_it_is_looked_at_and_no_faster_than_the_console(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Seconds go by where the test says so, and nowhere else.
    monkeypatch.setattr(ConsoleApp, "set_interval", lambda *_args, **_given: None)
    kept = Kept(desk)
    async with console(desk) as (app, pilot):
        await pilot.press("1")
        await settled(app, pilot)
        assert kept.asked == []
        await pilot.press("6")
        await settled(app, pilot)
        assert kept.asked == [ShowAudit(AuditFilter(), NEWEST)]

        async def second() -> int:
            desk.clock.advance(1.0)
            app._tick()
            await settled(app, pilot)
            return len(kept.asked)

        assert [await second() for _ in range(3)] == [2, 3, 4]
        # Every two seconds at the slowest rate, not at all while paused, unseen, or behind another pane.
        app.feed.set_rate(0.5)
        assert [await second() for _ in range(4)] == [4, 5, 5, 6]
        app.feed.set_rate(4.0)
        await pilot.press("p")
        assert await second() == 6
        await pilot.press("p")
        app.feed.focus(False)
        assert await second() == 6
        app.feed.focus(True)
        await pilot.press("1")
        assert await second() == 6
        await pilot.press("6")
        assert await second() == 7


async def test_a_new_record_comes_to_the_top(desk: Desk) -> None:
    kept = Kept(desk, AUDIT[1:])
    async with console(desk) as (app, pilot):
        await pilot.press("6")
        assert "● done" not in await settled(app, pilot)
        kept.records = AUDIT
        desk.clock.advance(1.0)
        app._tick()
        text = await settled(app, pilot)
        assert text.index("● done") < text.index("▲ refused")


async def test_filters_are_the_nodes_and_esc_shows_everything(desk: Desk) -> None:
    kept = Kept(desk)
    async with console(desk) as (app, pilot):
        await pilot.press("6")
        await settled(app, pilot)
        await pilot.press("e")
        assert "✗ failed" in await settled(app, pilot)
        assert "● done" not in screen_text(app)
        assert "Only outcome failed: esc shows everything." in screen_text(app)
        await pilot.press("m")
        await settled(app, pilot)
        assert kept.asked[-1].wanted == AuditFilter(model="smollm2", outcome="failed")
        await pilot.press("u")
        assert "--key tool --model smollm2 --outcome failed" in await settled(app, pilot)
        await pilot.press("escape")
        assert "● done" in await settled(app, pilot)
        assert kept.asked[-1].wanted == AuditFilter()
        assert "Only" not in screen_text(app)
        await pilot.press("slash", *"day quota", "enter")
        text = await settled(app, pilot)
        assert "▲ refused" in text
        assert "● done" not in text
        assert "esc clears it" in text


async def test_a_filter_that_leaves_nothing_says_how_to_go_on(desk: Desk) -> None:
    Kept(desk, AUDIT[:1])
    async with console(desk) as (app, pilot):
        await pilot.press("6")
        await settled(app, pilot)
        await pilot.press("e")
        assert "No record matches. esc shows everything." in await settled(app, pilot)
        await pilot.press("u")
        assert "no record is selected" in await settled(app, pilot)


async def test_an_answer_that_makes_no_sense_is_a_sentence(desk: Desk) -> None:
    desk.answer(ShowAudit, Outcome(ok=True, value={"records": [{"id": 7}]}))
    async with console(desk) as (app, pilot):
        await pilot.press("6")
        text = " ".join((await settled(app, pilot)).split())
        assert "the node's answer cannot be read" in text
        assert "restart the node and the console" in text


async def test_text_of_somebody_else_stays_text(desk: Desk) -> None:
    Kept(desk, hostile_audit())
    async with console(desk) as (app, pilot):
        await pilot.press("6")
        await settled(app, pilot)
        for keys in (("down",) * 4, ("enter",), ("escape", "u"), ("c",)):
            await pilot.press(*keys)
            await settled(app, pilot)
            assert all(line.isprintable() for line in screen_lines(app))
        for y in (3, 4, 6):
            await pilot.click(offset=(12, y))
        assert app.is_running
