"""The first step in words."""

from __future__ import annotations

from relaydesk.core.text import safe_text
from relaydesk.core.view.hopcheck import HopCheckView, HopScheduleView
from relaydesk.surfaces.console.panes.hopcheck import layers
from relaydesk.surfaces.console.panes.hopcheck.plan import Plan
from relaydesk.surfaces.console.widgets.spans import line_text, line_width
from tests.surfaces.console.panes.hopcheck.scenes import CLEAN, FAILING, IDLE, NOW_MS, replace


def _foot(plan: Plan, check: HopCheckView, width: int = 78, *, short: bool = False) -> str:
    lines = layers.foot(plan, check, NOW_MS, width, short=short)
    assert all(line_width(line) <= width for line in lines)
    return " ".join(" ".join(map(line_text, lines)).split())


def test_what_the_long_silences_cost_is_said_both_ways() -> None:
    off = _foot(Plan(), IDLE)
    assert (
        "[ ] long silences idle time-outs are not tested; takes 25 s at most. l adds 20, 65 and 125 s." in off
    )
    on = _foot(Plan(long=True), IDLE)
    assert "[x] long silences 20, 65 and 125 s: idle time-outs are found; takes over 2 min." in on


def test_a_layer_between_is_asked_for_only_where_there_is_none() -> None:
    assert "Is there a proxy" in _foot(Plan(), IDLE)
    assert "Is there a proxy" not in _foot(Plan(via=(("nginx", "http://127.0.0.1:8080"),)), IDLE)


def test_without_a_public_url_the_next_step_is_said() -> None:
    assert "This node advertises no URL: e gives the one that the world uses" in _foot(Plan(), HopCheckView())


def test_the_check_that_runs_by_itself() -> None:
    assert "every 6 h; 3 h 30 min ago it was well." in _foot(Plan(), IDLE)
    failing = replace(IDLE, schedule=FAILING)
    assert "at 10:52:50, just now, it failed: r tells what and where." in _foot(Plan(), failing)
    mended = replace(CLEAN, schedule=replace(FAILING, last_at_ms=NOW_MS - 90_000))
    assert "at 10:51:50 it failed, before the last run here." in _foot(Plan(), mended)
    fresh = replace(IDLE, schedule=HopScheduleView(21_600.0, next_at_ms=NOW_MS + 90_000))
    assert "for the first time in 1 min." in _foot(Plan(), fresh)
    off = replace(IDLE, schedule=HopScheduleView(why=safe_text("RELAY_HOP_CHECK_INTERVAL is 0")))
    assert "By itself the node checks nothing: RELAY_HOP_CHECK_INTERVAL is 0." in _foot(Plan(), off)
    assert "By itself" not in _foot(Plan(), replace(IDLE, schedule=HopScheduleView()))
    # Where rows are few, it is what goes.
    assert "By itself" not in _foot(Plan(), IDLE, short=True)


def test_the_command_line_is_shown_and_cut_where_there_is_one_line() -> None:
    plan = Plan(via=tuple((f"layer-{at}", f"http://127.0.0.1:808{at}") for at in range(5)), long=True)
    assert "--via layer-0=http://127.0.0.1:8080" in _foot(plan, IDLE)
    lines = layers.foot(plan, IDLE, NOW_MS, 58, short=True)
    assert line_text(lines[-1]).endswith("…")
    assert sum("does the same as" in line_text(line) for line in lines) == 1


def test_where_a_url_comes_from_is_a_word_and_not_a_colour() -> None:
    plan = Plan(via=(("nginx", "http://127.0.0.1:8080"),))
    cells = {row.key: row.cells[2].text for row in layers.rows(plan.entries(IDLE))}
    assert cells["nginx"] == "given here"
    assert cells["loopback"].startswith("found")
    assert cells["public"] == "advertised"
    assert layers.intro(58, short=True) != layers.intro(58, short=False)
