from __future__ import annotations

import datetime as dt
import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.tls.renewal import (
    FIRST_PAUSE_S,
    LONGEST_ASKED_S,
    LONGEST_PAUSE_S,
    RESTART_PAUSE_S,
    Age,
    Life,
    Tries,
    clock_error_s,
    http_date,
    pause_s,
    retry_after_s,
    start_wait_s,
)

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
WAITS = st.one_of(st.none(), st.floats(0, 1e9))


def test_a_certificate_is_due_with_a_third_of_its_life_left() -> None:
    life = Life(NOW, NOW + 90 * DAY)
    ages = {day: life.age(NOW + day * DAY) for day in (0, 59, 60, 61, 89, 90, 91)}
    assert [age.value for age in ages.values()] == ["good", "good", "due", "due", "due", "over", "over"]
    assert life.due_s(NOW + 59 * DAY) == DAY.total_seconds()


def test_a_start_in_the_future_is_early_only_beyond_what_clocks_differ() -> None:
    life = Life(NOW, NOW + 90 * DAY)
    assert life.age(NOW - dt.timedelta(minutes=59)) is Age.GOOD
    assert life.age(NOW - dt.timedelta(minutes=61)) is Age.EARLY


@given(st.integers(-(10**8), 10**8), st.integers(1, 10**8))
def test_every_moment_has_one_age(at: int, length: int) -> None:
    life = Life(NOW, NOW + dt.timedelta(seconds=length))
    now = NOW + dt.timedelta(seconds=at)
    age = life.age(now)
    assert (age is Age.OVER) is (at >= length)
    assert (age is Age.EARLY) is (at < -3600)
    if age in (Age.GOOD, Age.DUE):
        assert (age is Age.DUE) is (life.due_s(now) <= 0)


@given(st.integers(-3, 10**6), st.floats(0, 1, exclude_max=True), WAITS, WAITS)
def test_a_pause_has_bounds(failures: int, draw: float, asked: float | None, left: float | None) -> None:
    pause = pause_s(failures, draw, asked_s=asked, left_s=left)
    assert FIRST_PAUSE_S / 2 <= pause <= max(LONGEST_PAUSE_S, LONGEST_ASKED_S)
    if asked is not None:
        assert pause >= min(asked, LONGEST_ASKED_S)


def test_a_pause_doubles_to_its_bound_and_is_shorter_where_little_is_left() -> None:
    grown = [pause_s(n, 0.0) for n in range(1, 12)]
    assert grown[:4] == [60, 120, 240, 480]
    assert grown[-1] == LONGEST_PAUSE_S
    assert pause_s(20, 0.0, left_s=DAY.total_seconds()) == 8640
    assert pause_s(20, 0.0, left_s=60) == FIRST_PAUSE_S
    assert pause_s(20, 0.0, left_s=-5) == LONGEST_PAUSE_S, "what is over does not come back by hurrying"


def test_jitter_takes_up_to_half_away() -> None:
    assert pause_s(3, 0.999) < pause_s(3, 0.5) < pause_s(3, 0.0) == 240
    assert pause_s(3, 0.999, asked_s=200) == 200, "never below what the server asked for"


def test_a_start_goes_on_waiting_for_at_most_five_minutes_after_the_last_try() -> None:
    tries = Tries(failures=9, tried_ms=1_000_000, next_ms=1_000_000 + 6 * 3_600_000, plan="a")
    assert start_wait_s(tries, 1_000_000, "a") == RESTART_PAUSE_S
    assert start_wait_s(tries, 1_000_000 + 299_000, "a") == 1
    assert start_wait_s(tries, 1_000_000 + 301_000, "a") == 0


def test_changed_settings_are_tried_at_once_but_the_server_is_heeded() -> None:
    tries = Tries(failures=1, tried_ms=1_000_000, next_ms=1_060_000, plan="a")
    assert start_wait_s(tries, 1_000_000, "a") == 60
    assert start_wait_s(tries, 1_000_000, "b") == 0
    asked = Tries(failures=1, tried_ms=1_000_000, next_ms=1_060_000, asked_ms=1_900_000, plan="a")
    assert start_wait_s(asked, 1_000_000, "b") == start_wait_s(asked, 1_000_000, "a") == 900


def test_no_failure_or_a_clock_set_back_means_no_wait() -> None:
    assert start_wait_s(Tries(), 5, "") == 0
    assert start_wait_s(Tries(1, 10_000, 99_000, 99_000), 9_000, "") == 0


@given(st.builds(Tries, *[st.integers(-(10**15), 10**15)] * 4), st.integers(0, 10**14))
def test_no_record_makes_a_start_wait_for_ever(tries: Tries, now_ms: int) -> None:
    assert 0 <= start_wait_s(tries, now_ms, "") <= LONGEST_ASKED_S


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Mon, 01 Jun 2026 12:01:00 GMT", 60),
        ("Mon, 01 Jun 2026 11:59:00 GMT", 0),
        ("", None),
        ("soon", None),
        ("Mon, 31 Jun 2026 12:01:00 GMT", None),
        ("Mon, 01 Xxx 2026 12:01:00 GMT", None),
        ("Mon, 01 Jun 0000 12:01:00 GMT", None),
        ("Mon, 01 Jun 2026 25:01:00 GMT", None),
        ("Mon, 01 Jun 2026 12:01:60 GMT", 119),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after_s(text, NOW) == seconds


@given(st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(9999, 1, 1)))
def test_every_date_is_read_as_the_library_writes_it(when: dt.datetime) -> None:
    when = when.replace(microsecond=0, tzinfo=dt.UTC)
    assert http_date(email.utils.format_datetime(when, usegmt=True)) == when


@given(st.text())
def test_no_header_is_misread(text: str) -> None:
    found = retry_after_s(text, NOW)
    assert found is None or found >= 0
    assert http_date(text) is None or http_date(text).tzinfo is not None  # type: ignore[union-attr]


def test_a_clock_is_wrong_by_more_than_an_hour() -> None:
    assert clock_error_s("Mon, 01 Jun 2026 13:00:00 GMT", NOW) == 0
    assert clock_error_s("Mon, 01 Jun 2026 13:00:01 GMT", NOW) == -3601
    assert clock_error_s("Mon, 01 Jun 2025 12:00:00 GMT", NOW) == 365 * 86400
    assert clock_error_s("nonsense", NOW) == clock_error_s("", NOW) == 0
