from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.schedule import (
    INNER_ATTEMPTS,
    OVERALL_MS,
    SWEEPS,
    inner_delay_ms,
    may_sweep,
    retry_after_ms,
    sweep_delay_ms,
    wait,
)


def test_the_tables() -> None:
    assert [inner_delay_ms(index) for index in range(-1, 5)] == [0, 0, 500, 1500, 1500, 1500]
    assert [sweep_delay_ms(index) for index in range(-1, 6)] == [0, 0, 4000, 12000, 30000, 30000, 30000]
    assert (INNER_ATTEMPTS, SWEEPS, OVERALL_MS) == (3, 4, 60_000)


@given(st.integers(0, 10**6), st.integers(0, 10**9), st.integers(-(10**6), 10**6))
def test_a_wait_is_the_longer_one_and_fits_the_budget(scheduled: int, asked: int, remaining: int) -> None:
    delay = wait(scheduled, asked, remaining)
    if delay is None:
        assert remaining <= 0 or max(scheduled, asked) >= remaining
    else:
        assert delay == max(scheduled, asked) < remaining


def test_the_last_moment_is_too_late() -> None:
    assert wait(500, 0, 500) is None
    assert wait(500, 0, 501) == 500
    assert wait(0, 0, 0) is None
    assert wait(0, 0, 1) == 0


@pytest.mark.parametrize(("header", "ms"), [("2", 2000), (" 2\t", 2000), ("0", 0), ("007", 7000)])
def test_whole_seconds_are_read(header: str, ms: int) -> None:
    assert retry_after_ms(header) == ms


@pytest.mark.parametrize(
    "header",
    [None, "", "-1", "+2", "1.5", "1e3", "٢", "1_0", "2 s", "9" * 10, "Wed, 21 Oct 2026 07:28:00 GMT", "nan"],
)
def test_anything_else_asks_for_nothing(header: str | None) -> None:
    assert retry_after_ms(header) == 0


@given(st.text(max_size=20))
def test_any_header_has_an_answer(header: str) -> None:
    assert 0 <= retry_after_ms(header) < 10**12


def test_a_sweep_follows_only_where_all_may_pass_and_nothing_is_paid() -> None:
    for transient, refused, paid in itertools.product([False, True], repeat=3):
        wanted = transient and not refused and not paid
        assert may_sweep(all_transient=transient, refused=refused, paid=paid) == wanted
