"""How amounts are said."""

from __future__ import annotations

import pytest

from relaydesk.core.view.amounts import count, duration, mib, millis, of_size, plural, rate, size, some


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3, "0 s"),
        (0.9, "0 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (3_600, "1 h"),
        (3_605, "1 h"),
        (11_520, "3 h 12 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_amounts() -> None:
    assert [millis(None), millis(12.4), millis(9_999), millis(12_345)] == ["–", "12 ms", "9999 ms", "12.3 s"]
    assert [rate(7.25), rate(41.7)] == ["7.2", "42"]
    assert [mib(243), mib(15_800), mib(512, scale=15_800)] == ["243 MiB", "15.4 GiB", "0.5 GiB"]
    assert [size(12), size(98_362_432), size(19_762_149_376)] == ["12 B", "93.8 MiB", "18.4 GiB"]
    assert [of_size(44_040_192, 92_905_472), of_size(5, 12), of_size(7, 0)] == [
        "42.0 of 88.6 MiB",
        "5 of 12 B",
        "7 B",
    ]
    assert [plural(1, "alert"), plural(2, "request in flight"), plural(0, "loaded model")] == [
        "1 alert",
        "2 requests in flight",
        "0 loaded models",
    ]


def test_counts_in_few_cells() -> None:
    assert [count(value) for value in (0, 9_999, 40_213, 3_456_789)] == ["0", "9999", "40.2 k", "3.5 M"]
    assert [some(1, "token"), some(0, "token"), some(40_213, "token")] == [
        "1 token",
        "0 tokens",
        "40.2 k tokens",
    ]
