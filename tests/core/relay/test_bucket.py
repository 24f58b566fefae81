from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay import bucket
from relaydesk.core.relay.bucket import Buckets, bucket_key


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("unix", "unix", True),
        ("", "0.0.0.0", False),
    ],
)
def test_who_counts_as_one_client(one: str, other: str, same: bool) -> None:
    assert (bucket_key(one) == bucket_key(other)) is same


def test_a_full_bucket_then_one_at_a_time() -> None:
    buckets = Buckets()
    assert [buckets.take("a", 4, 0.0) for _ in range(4)] == [0.0] * 4
    assert buckets.take("a", 4, 0.0) == pytest.approx(15.0)
    assert buckets.take("b", 4, 0.0) == 0.0
    assert buckets.take("a", 4, 14.9) == pytest.approx(0.1)
    assert buckets.take("a", 4, 15.0) == 0.0
    assert buckets.take("a", 4, 15.0) > 0


def test_fewer_at_once_than_in_a_minute_and_more() -> None:
    for burst in (3, 100):
        buckets = Buckets()
        assert [buckets.take("a", 30, 0.0, burst=burst) for _ in range(burst)] == [0.0] * burst
        assert buckets.take("a", 30, 0.0, burst=burst) == pytest.approx(2.0)
        assert buckets.take("a", 30, 2.0, burst=burst) == 0.0
        assert buckets.take("a", 30, 2.0, burst=burst) > 0
        assert [buckets.take("a", 30, 9000.0, burst=burst) for _ in range(burst)] == [0.0] * burst


@given(st.integers(1, 50), st.lists(st.floats(0, 40), max_size=150))
def test_never_more_than_a_bucket_and_what_came_back(per_minute: int, gaps: list[float]) -> None:
    """Any stretch of time admits at most a full bucket and what flows back meanwhile."""
    buckets, now = Buckets(), 1000.0
    admitted: deque[float] = deque()
    for gap in gaps:
        now += gap
        if buckets.take("a", per_minute, now) == 0.0:
            admitted.append(now)
    for first in range(len(admitted)):
        for last in range(first, len(admitted)):
            stretch = admitted[last] - admitted[first]
            assert last - first + 1 <= per_minute + stretch * per_minute / 60 + 1e-6


def test_full_buckets_are_forgotten_and_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    buckets = Buckets()
    buckets.take("a", 60, 0.0)
    buckets.take("b", 1, 0.0)
    buckets.forget_full(30.0)
    assert len(buckets) == 1
    monkeypatch.setattr(bucket, "MOST", 10)
    for number in range(50):
        buckets.take(str(number), 1, 0.0)
    assert len(buckets) <= 11
