from __future__ import annotations

import time

from relaydesk.engine.clock import SystemClock, SystemRng


def test_wall_time_is_milliseconds_since_1970() -> None:
    assert abs(SystemClock().wall_ms() - time.time() * 1000) < 2000


def test_mono_time_is_seconds_and_only_goes_forward() -> None:
    clock = SystemClock()
    before = clock.mono()
    time.sleep(0.02)
    assert 0.02 <= clock.mono() - before < 2


def test_random_bytes_differ() -> None:
    rng = SystemRng()
    drawn = {rng.token_bytes(16) for _ in range(100)}
    assert len(drawn) == 100
    assert {len(data) for data in drawn} == {16}
