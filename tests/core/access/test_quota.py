"""The books of one key: examples, and random interleavings against a model that adds up from scratch."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.access.quota import DAY_MS, Ask, Grant, KeyQuota, day_of
from relaydesk.core.errors import PeerError

NOON = 20_000 * DAY_MS + DAY_MS // 2
TODAY = day_of(NOON)


def quota(used: int = 0, **limits: int) -> KeyQuota:
    return KeyQuota(KeyLimits(**limits), {TODAY: used})


def ask(prompt: int = 10, limit: int = 20, choices: int = 1) -> Ask:
    return Ask(prompt=prompt, limit=limit, choices=choices)


def refusal(
    books: KeyQuota, what: Ask | None = None, now: float = 0.0, wall: int = NOON
) -> tuple[str, int | None]:
    before = (dict(books.used), books.standing(now, wall))
    with pytest.raises(PeerError) as caught:
        books.admit(what or ask(), now, wall)
    assert (dict(books.used), books.standing(now, wall)) == before, "a refusal costs nothing"
    return caught.value.fault.code, caught.value.fault.retry_after


def test_without_limits_everything_is_admitted_and_counted() -> None:
    books = quota()
    grants = [books.admit(ask(), 0.0, NOON) for _ in range(50)]
    assert books.running == 50
    assert all(grant.limit is None and not grant.recount for grant in grants)
    for grant in grants:
        books.settle(grant, 7)
        books.settle(grant, 7)
    standing = books.standing(0.0, NOON)
    assert (standing.used, standing.reserved, standing.running) == (350, 0, 0)
    assert standing.tokens_left is None and standing.minute_left is None


def test_concurrency() -> None:
    books = quota(max_concurrency=2)
    first, _ = books.admit(ask(), 0.0, NOON), books.admit(ask(), 0.0, NOON)
    assert refusal(books) == ("concurrency_exceeded", 1)
    books.settle(first, 0)
    books.admit(ask(), 0.0, NOON)


def test_any_sixty_seconds() -> None:
    books = quota(requests_per_minute=2)
    for now in (0.0, 30.0):
        books.settle(books.admit(ask(), now, NOON), 1)
    assert refusal(books, now=31.5) == ("requests_per_minute_exceeded", 29)
    assert refusal(books, now=59.9) == ("requests_per_minute_exceeded", 1)
    books.admit(ask(), 60.0, NOON)
    assert refusal(books, now=61.0) == ("requests_per_minute_exceeded", 29)
    books.limits = KeyLimits(requests_per_minute=1)
    assert refusal(books, now=61.0) == ("requests_per_minute_exceeded", 59)


def test_what_a_request_may_cost_is_set_aside() -> None:
    books = quota(tokens_per_day=100)
    grant = books.admit(ask(prompt=10, limit=20, choices=2), 0.0, NOON)
    assert (grant.reserved, grant.recount) == (50, False)
    assert books.standing(0.0, NOON).tokens_left == 50
    books.settle(grant, 13)
    assert books.standing(0.0, NOON).tokens_left == 87


def test_a_bound_beyond_what_is_left_is_counted_exactly_later() -> None:
    books = quota(used=60, tokens_per_day=100)
    grant = books.admit(ask(prompt=500, limit=500, choices=2), 0.0, NOON)
    assert grant.recount and grant.reserved == 40
    assert refusal(books, ask(1, 1)) == ("concurrency_exceeded", 2)
    assert books.recount(grant, 15, NOON) == 12
    assert (grant.limit, grant.reserved) == (12, 39)
    books.settle(grant, 39)
    assert refusal(books, ask(1, 1)) == ("tokens_per_day_exceeded", None)


@pytest.mark.parametrize(("prompt", "each"), [(38, 1), (39, None), (40, None), (4000, None)])
def test_the_exact_prompt_and_one_token_each_have_to_fit(prompt: int, each: int | None) -> None:
    books = quota(used=60, tokens_per_day=100)
    grant = books.admit(ask(500, 500, 2), 0.0, NOON)
    if each is not None:
        assert books.recount(grant, prompt, NOON) == each
        return
    with pytest.raises(PeerError) as caught:
        books.recount(grant, prompt, NOON)
    assert caught.value.fault.code == "tokens_per_day_exceeded"
    assert "00:00 UTC, in 12 h 0 min" in caught.value.fault.hint
    books.settle(grant, 0)
    assert books.standing(0.0, NOON).tokens_left == 40


def test_a_refusal_after_the_count_gives_the_minute_back() -> None:
    books = quota(used=60, tokens_per_day=100, requests_per_minute=1)
    grant = books.admit(ask(500, 500), 0.0, NOON)
    with pytest.raises(PeerError):
        books.recount(grant, 4000, NOON)
    books.settle(grant, 0)
    assert books.standing(1.0, NOON).minute_left == 1
    assert books.admit(ask(1, 1), 1.0, NOON).reserved == 2


def test_a_limit_that_is_taken_away_while_a_request_waits() -> None:
    books = quota(used=60, tokens_per_day=100)
    grant = books.admit(ask(500, 500), 0.0, NOON)
    books.limits = KeyLimits()
    assert books.recount(grant, 4000, NOON) > 10**9
    assert grant.limit is None


def test_midnight() -> None:
    books = quota(used=90, tokens_per_day=100)
    late = books.admit(ask(5, 5), 0.0, NOON)
    tomorrow = NOON + DAY_MS
    assert books.standing(0.0, tomorrow).tokens_left == 100
    early = books.admit(ask(60, 40), 0.0, tomorrow)
    books.settle(late, 8)
    assert books.used == {TODAY: 98}
    books.settle(early, 50)
    assert books.used == {TODAY: 98, TODAY + 1: 50}
    # A clock that is set back finds what was used on the day that it is again.
    assert books.standing(0.0, NOON).tokens_left == 2
    books.settle(books.admit(ask(1, 1), 0.0, NOON + 400 * DAY_MS), 2)
    assert books.standing(0.0, NOON).tokens_left == 2
    for day in range(40):
        books.settle(books.admit(ask(1, 1), 0.0, NOON + (500 + day) * DAY_MS), 2)
    assert len(books.used) == 32


class Interleavings(RuleBasedStateMachine):
    """Starts, ends, cancellations, restarts, changed limits and passing time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.books = KeyQuota(KeyLimits(tokens_per_day=100, max_concurrency=3, requests_per_minute=5))
        self.now, self.wall = 0.0, NOON
        self.running: list[Grant] = []
        self.charged: dict[int, int] = {}
        self.starts: list[float] = []

    @rule(prompt=st.integers(1, 80), limit=st.integers(1, 80), choices=st.integers(1, 3))
    def start(self, prompt: int, limit: int, choices: int) -> None:
        limits, day = self.books.limits, day_of(self.wall)
        set_aside = sum(each.reserved for each in self.running if each.day == day)
        left = limits.tokens_per_day - self.charged.get(day, 0) - set_aside
        window = [each for each in self.starts if each + 60 > self.now]
        fits = left >= min(prompt + limit * choices, 1 + choices) or not limits.tokens_per_day
        allowed = (
            fits
            and (len(self.running) < limits.max_concurrency or not limits.max_concurrency)
            and (len(window) < limits.requests_per_minute or not limits.requests_per_minute)
        )
        try:
            grant = self.books.admit(ask(prompt, limit, choices), self.now, self.wall)
        except PeerError:
            assert not allowed
            return
        assert allowed
        self.running.append(grant)
        # Starts are not noted while nobody counts them.
        self.starts = [*window, self.now] if limits.requests_per_minute else window

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        grant = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        used = 0
        if grant.recount:
            exact = data.draw(st.integers(1, 80))
            try:
                each = self.books.recount(grant, exact, self.wall)
            except PeerError:
                # A refusal costs nothing of the minute either.
                if grant.started in self.starts:
                    self.starts.remove(grant.started)
            else:
                used = exact + data.draw(st.integers(0, min(each, 100) * grant.choices))
        else:
            used = data.draw(st.integers(0, grant.reserved))
        if not self.books.limits.tokens_per_day or used <= grant.reserved:
            self.books.settle(grant, used)
            self.books.settle(grant, used)
            self.charged[grant.day] = self.charged.get(grant.day, 0) + used
        else:
            raise AssertionError("a request may use more than was set aside")

    @rule(seconds=st.floats(0, 70))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.wall += round(seconds * 1000)

    @rule(days=st.sampled_from([-1, 0, 1]))
    def the_clock_jumps(self, days: int) -> None:
        self.wall += days * DAY_MS

    @rule()
    def restart(self) -> None:
        """What ran is gone with the process; what was charged is read back."""
        self.books = KeyQuota(self.books.limits, dict(self.charged))
        self.running, self.starts = [], []

    @rule(
        tokens=st.sampled_from([0, 50, 100, 300]),
        running=st.sampled_from([0, 1, 3]),
        minute=st.sampled_from([0, 2, 5]),
    )
    def change(self, tokens: int, running: int, minute: int) -> None:
        self.books.limits = KeyLimits(
            tokens_per_day=tokens, max_concurrency=running, requests_per_minute=minute
        )

    @invariant()
    def the_books_add_up(self) -> None:
        standing = self.books.standing(self.now, self.wall)
        day = day_of(self.wall)
        assert standing.running == len(self.running)
        assert standing.used == self.charged.get(day, 0)
        assert standing.reserved == sum(each.reserved for each in self.running if each.day == day)
        if not self.running:
            assert standing.reserved == 0


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
