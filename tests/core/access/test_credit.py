"""The credit of one key: examples, and random interleavings against a model that adds up from scratch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from relaydesk.core.access.credit import Hold, KeyCredit, credit_text, parse_credit
from relaydesk.core.access.limits import MOST
from relaydesk.core.access.quota import DAY_MS, day_of
from relaydesk.core.errors import PeerError

NOON = 20_000 * DAY_MS + DAY_MS // 2
TODAY = day_of(NOON)


def refusal(books: KeyCredit, amount: int, wall: int = NOON) -> PeerError:
    before = (dict(books.spent), books.standing(wall))
    with pytest.raises(PeerError) as caught:
        books.hold(amount, wall)
    assert (dict(books.spent), books.standing(wall)) == before, "a refusal changes nothing"
    return caught.value


def test_what_a_ticket_may_cost_is_set_aside_and_the_rest_comes_back() -> None:
    books = KeyCredit(100)
    hold = books.hold(60, NOON)
    assert books.standing(NOON).left == 40
    assert books.settle(hold, 25) == -35
    assert books.settle(hold, 25) == 0
    standing = books.standing(NOON)
    assert (standing.spent, standing.held, standing.left) == (25, 0, 75)


def test_no_burst_passes_the_limit() -> None:
    books = KeyCredit(100)
    books.hold(60, NOON)
    waits = refusal(books, 41).fault
    assert (waits.code, waits.retry_after) == ("concurrency_exceeded", 2)
    over = refusal(books, 101).fault
    assert over.code == "credit_per_day_exceeded" and over.retry_after is None
    assert "may cost 101 microunits" in over.message and "has 100 of its 100" in over.message
    assert over.hint.endswith("they are new at 00:00 UTC, in 12 h 0 min")
    books.hold(40, NOON)


def test_without_credit_only_what_is_free() -> None:
    books = KeyCredit()
    assert books.settle(books.hold(0, NOON), 0) == 0
    assert "--credit-per-day" in refusal(books, 1).fault.hint


def test_what_was_paid_beyond_what_was_set_aside_is_booked_as_it_is() -> None:
    books = KeyCredit(100)
    assert books.settle(books.hold(60, NOON), 150) == 90
    assert books.standing(NOON).left == 0
    refusal(books, 1)


def test_midnight_and_a_clock_that_is_set_back() -> None:
    books = KeyCredit(100, {TODAY: 90})
    late = books.hold(10, NOON)
    tomorrow = NOON + DAY_MS
    books.settle(books.hold(100, tomorrow), 70)
    books.settle(late, 5)
    assert books.spent == {TODAY: 95, TODAY + 1: 70}
    assert books.standing(NOON).left == 5
    for day in range(60):
        books.settle(books.hold(1, NOON + day * DAY_MS + 400 * DAY_MS), 1)
    assert len(books.spent) == 32


class Interleavings(RuleBasedStateMachine):
    """Tickets that open and end, changed limits, restarts and jumping clocks, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.books = KeyCredit(100)
        self.wall = NOON
        self.running: list[Hold] = []
        # What is on the disk: what was set aside counts as spent until it is known otherwise.
        self.written: dict[int, int] = {}

    def _write(self, day: int, change: int) -> None:
        self.written[day] = self.written.get(day, 0) + change

    @rule(amount=st.integers(0, 120))
    def open(self, amount: int) -> None:
        day, limit = day_of(self.wall), self.books.limit
        fits = not amount or self.written.get(day, 0) + amount <= limit
        try:
            hold = self.books.hold(amount, self.wall)
        except PeerError:
            assert not fits
            return
        assert fits
        self.running.append(hold)
        self._write(day, amount)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        hold = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        amount = data.draw(st.integers(0, hold.amount))
        change = self.books.settle(hold, amount)
        assert change == amount - hold.amount
        assert self.books.settle(hold, amount) == 0
        self._write(hold.day, change)

    @rule()
    def restart(self) -> None:
        """Tickets whose end nobody saw stay spent."""
        self.books = KeyCredit(self.books.limit, {day: spent for day, spent in self.written.items() if spent})
        self.running = []

    @rule(limit=st.sampled_from([0, 50, 100, 300]))
    def change(self, limit: int) -> None:
        self.books.limit = limit

    @rule(days=st.sampled_from([-1, 0, 1]))
    def the_clock_jumps(self, days: int) -> None:
        self.wall += days * DAY_MS

    @invariant()
    def the_books_add_up(self) -> None:
        standing, day = self.books.standing(self.wall), day_of(self.wall)
        assert standing.held == sum(each.amount for each in self.running if each.day == day)
        assert standing.spent + standing.held == self.written.get(day, 0)
        assert standing.left == max(0, standing.limit - self.written.get(day, 0))


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("250000", 250_000),
        ("250,000", 250_000),
        ("1_500 000", 1_500_000),
        ("250k", 250_000),
        ("5M", 5_000_000),
        (" 0.25USD ", 250_000),
        ("0.25 usd", 250_000),
        ("3usdc", 3_000_000),
        ("0.000001USD", 1),
        (str(MOST), MOST),
    ],
)
def test_amounts_that_people_write(text: str, amount: int) -> None:
    assert parse_credit(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "0.5",
        "1e3",
        "1,5",
        "1,0000",
        ",500",
        "1,000USD",
        "0.5M",
        "5MUSD",
        "0.0000001USD",
        "USD",
        "1 EUR",
        "٣",
        str(MOST + 1),
        "9" * 40,
    ],
)
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"amount|range"):
        parse_credit(text)


@given(st.integers(1, MOST))
def test_an_amount_reads_as_it_is_shown(amount: int) -> None:
    micro, _, usd = credit_text(amount).partition(" (")
    assert int(micro.replace(",", "")) == amount
    assert parse_credit(usd.rstrip(")")) == amount


@given(st.text(max_size=20))
def test_any_text_is_an_amount_or_none(text: str) -> None:
    try:
        assert 0 <= parse_credit(text) <= MOST
    except ValueError:
        pass
