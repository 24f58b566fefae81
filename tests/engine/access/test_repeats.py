from __future__ import annotations

from relaydesk.engine.access.repeats import EVERY_S, Repeats
from tests.support.clock import FakeClock

CODE = "tokens_per_day_exceeded"


def test_a_spent_quota_is_told_now_and_then_with_what_went_untold() -> None:
    clock = FakeClock()
    repeats = Repeats(clock)
    assert [repeats.again("ann", CODE) for _ in range(5)] == [False, True, True, True, True]
    assert not repeats.again("bob", CODE)
    assert not repeats.again("ann", "concurrency_exceeded")
    clock.advance(EVERY_S)
    assert not repeats.again("ann", CODE)
    assert (repeats.untold("ann", CODE), repeats.untold("ann", CODE)) == (4, 0)


def test_everything_else_is_always_told() -> None:
    repeats = Repeats(FakeClock())
    assert not any(repeats.again("ann", code) for code in ("", "engine_failed", "") for _ in range(3))
