from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.gateway.ollama.instant import instant


def test_a_point_in_time() -> None:
    assert instant(1_796_007_817_042) == "2026-11-30T03:03:37.042+00:00"
    assert instant(0) == "1970-01-01T00:00:00.000+00:00"


@given(st.integers(-(2**70), 2**70), st.integers(-14, 14))
def test_every_client_can_read_it_in_its_own_time(at_ms: int, hours: int) -> None:
    read = datetime.fromisoformat(instant(at_ms))
    assert read.tzinfo == UTC
    assert read.year <= 9999
    if at_ms >= 86_400_000:
        read.astimezone(timezone(timedelta(hours=hours)))
