"""Earnings as bars by day."""

from __future__ import annotations

from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import EarningView
from relaydesk.surfaces.console.panes.ledger import earned
from tests.surfaces.console.panes.ledger_scenes import ledger
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

EARNINGS = ledger(NOW_MS).earnings
TODAY = NOW_MS // 86_400_000


def test_a_row_and_the_fortnight_around_it() -> None:
    lines = texts(earned.lines(EARNINGS[2], EARNINGS, TODAY, 60))
    assert lines[0] == "smollm2  2026-03-13"
    assert "earned      402,120 microunits" in lines
    assert "tickets     78 ended, 5,155 each" in lines
    assert "paid back   12,971" in lines
    whole = sum(each.earned for each in EARNINGS)
    assert f"Earned a day  {whole:,} in 14 days" in lines
    days = [line for line in lines if line.startswith(("today", "Mar "))]
    assert len(days) == earned.DAYS
    assert all(len(line) == 60 for line in days)
    # Days without anything are there, and the fullest fills its line.
    assert days[-1].startswith("Mar 1  ····")
    (best,) = [line for line in days if line.startswith("Mar 9")]
    assert "·" not in best and best.endswith("759,342")
    assert [line.split()[1] for line in lines[-3:]] == ["smollm2", "gemma-3-270m", "smollm2-long"]


def test_a_fifth_model_and_more_are_one_part() -> None:
    many = tuple(EarningView(TODAY, safe_text(f"m{at}"), 1, 100 - at) for at in range(7))
    lines = texts(earned.lines(many[0], many, TODAY, 50))
    assert [line.split()[1:] for line in lines[-5:]] == [
        ["m0", "100"], ["m1", "99"], ["m2", "98"], ["m3", "97"], ["others", "285"],
    ]  # fmt: skip


def test_nothing_earned_and_an_older_day() -> None:
    free = EarningView(TODAY - 40, safe_text("free"), 0, 0)
    lines = texts(earned.lines(free, (free,), TODAY, 50))
    assert "tickets     none ended" in lines
    assert "Earned a day  0 in 14 days" in lines


def test_in_ascii_nothing_else_is_drawn() -> None:
    lines = texts(earned.lines(EARNINGS[0], EARNINGS, TODAY, 50, ascii=True))
    assert all(line.isascii() for line in lines)
