from __future__ import annotations

import pytest

from relaydesk.engine.pull.meter import Meter
from relaydesk.engine.pull.pulled import Progress
from tests.support.clock import FakeClock


def test_reports_are_spaced_and_the_end_is_told() -> None:
    clock, told = FakeClock(), list[Progress]()
    meter = Meter(clock, told.append, resumable=True)
    meter.start("downloading", total=1000)
    for _ in range(9):
        clock.advance(0.0625)
        meter.add(100)
    assert [one.done for one in told] == [0, 400, 800]
    meter.add(100)
    assert told[-1].done == 1000


def test_the_rate_is_of_the_last_seconds() -> None:
    clock, told = FakeClock(), list[Progress]()
    meter = Meter(clock, told.append, resumable=True)
    meter.start("downloading", total=10_000, done=5000)
    clock.advance(1)
    meter.add(1000)
    assert told[-1].rate == pytest.approx(1000)
    for _ in range(20):
        clock.advance(1)
        meter.add(10)
    assert told[-1].rate == pytest.approx(10)
    clock.advance(1)
    meter.add(-6000)
    assert told[-1].done == 200
    assert told[-1].rate == 0
