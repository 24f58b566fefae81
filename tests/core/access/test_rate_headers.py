from __future__ import annotations

import pytest

from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.access.quota import DAY_MS, Ask, KeyQuota
from relaydesk.core.access.rate_headers import duration, rate_headers


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.1, "1s"), (59, "59s"), (60, "1m0s"), (360, "6m0s"), (3723, "1h2m3s"), (86_400, "24h0m0s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_only_limits_that_there_are() -> None:
    books = KeyQuota(KeyLimits())
    assert rate_headers(books.limits, books.standing(0.0, 0)) == {}


def test_what_is_left_and_until_when() -> None:
    books = KeyQuota(KeyLimits(tokens_per_day=1000, requests_per_minute=3))
    noon = DAY_MS // 2
    books.admit(Ask(prompt=100, limit=50), 0.0, noon)
    assert rate_headers(books.limits, books.standing(20.5, noon)) == {
        "x-ratelimit-limit-requests": "3",
        "x-ratelimit-remaining-requests": "2",
        "x-ratelimit-reset-requests": "40s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "850",
        "x-ratelimit-reset-tokens": "12h0m0s",
    }
