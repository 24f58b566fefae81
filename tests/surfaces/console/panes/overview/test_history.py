"""A rate over time."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.overview.history import History


def test_one_sample_a_step_and_gaps_where_nothing_was_seen() -> None:
    history = History(1000, kept=5)
    for now_ms, value in ((10_000, 1.0), (10_900, 2.0), (11_000, 3.0), (13_500, None), (14_000, 4.0)):
        history.add(now_ms, value)
    assert history.values == (2.0, 3.0, None, None, 4.0)
    history.add(14_100, None)
    assert history.values == (2.0, 3.0, None, None, 4.0)


def test_a_clock_set_back_takes_nothing_away() -> None:
    history = History(1000)
    history.add(50_000, 1.0)
    history.add(20_000, 2.0)
    history.add(21_000, 3.0)
    assert history.values == (1.0, 2.0, 3.0)


def test_a_night_asleep_does_not_fill_memory() -> None:
    history = History(1000, kept=5)
    history.add(0, 1.0)
    history.add(40_000_000, 2.0)
    assert history.values == (None, None, None, None, 2.0)
