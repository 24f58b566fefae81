"""Reply keys of reserves that succeeded: how long they are remembered."""

from __future__ import annotations

from relaydesk.engine.relay.target.replay import ReplaySet
from tests.support.clock import FakeClock


def test_a_key_is_remembered_for_90_seconds() -> None:
    clock = FakeClock()
    seen = ReplaySet(clock)
    now = clock.wall_ms() // 1000
    assert not seen.seen("a")
    seen.add("a", now - 20)
    clock.advance(89)
    assert seen.seen("a")
    clock.advance(2)
    assert not seen.seen("a") and len(seen) == 0


def test_one_signed_ahead_of_time_for_as_long_as_it_is_good() -> None:
    """Signed 30 seconds ahead it is good for 120: forgotten earlier, it would be taken twice."""
    clock = FakeClock()
    seen = ReplaySet(clock)
    seen.add("ahead", clock.wall_ms() // 1000 + 30)
    seen.add("b", clock.wall_ms() // 1000)
    clock.advance(119)
    assert seen.seen("ahead")
    clock.advance(3)
    assert not seen.seen("ahead") and not seen.seen("b") and len(seen) == 0


def test_a_clock_that_jumps_forgets_nothing() -> None:
    clock = FakeClock()
    seen = ReplaySet(clock)
    seen.add("a", clock.wall_ms() // 1000)
    clock.set_wall_ms(clock.wall_ms() + 3_600_000)
    assert seen.seen("a")


def test_one_that_failed_after_all_is_forgotten() -> None:
    seen = ReplaySet(FakeClock())
    seen.add("a", 0)
    seen.drop("a")
    seen.drop("a")
    assert not seen.seen("a")
