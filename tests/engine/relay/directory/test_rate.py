from __future__ import annotations

from relaydesk.engine.relay.directory.rate import Bucket
from tests.support.clock import FakeClock


def test_a_burst_and_then_a_rate() -> None:
    clock = FakeClock()
    bucket = Bucket(0.5, 3, clock)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    clock.advance(2)
    assert [bucket.take(), bucket.take()] == [True, False]
    clock.advance(1000)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
