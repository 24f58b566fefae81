from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from relaydesk.core.errors import Fault
from relaydesk.core.pool import lifecycle as lc
from relaydesk.core.pool.lifecycle import (
    COLD,
    Deny,
    Died,
    Effect,
    EndStreams,
    Event,
    Evict,
    Failed,
    Grant,
    Life,
    LoadRequested,
    Progress,
    Ready,
    Refuse,
    RequestDone,
    StartEngine,
    StopEngine,
    Stopped,
    Tick,
    Unload,
    WaiterLeft,
    backoff_s,
    public_state,
    step,
    wake_at,
)

BROKEN = Fault("model_load_failed", "the engine said no")
CRASH = Fault("engine_failed", "the engine died")
NO_ROOM = Fault("model_unavailable", "no room")


class Line:
    """A life driven by hand."""

    def __init__(self, keep_alive_s: int = 100) -> None:
        self.life: Life = COLD
        self.keep_alive_s = keep_alive_s
        self.now = 1000.0

    def __call__(self, event: Event, after: float = 0.0) -> tuple[Effect, ...]:
        self.now += after
        self.life, effects = step(self.life, event, self.now, self.keep_alive_s)
        return effects

    def warm(self) -> Line:
        self(LoadRequested(waits=False))
        self(Ready(self.life.run))
        assert self.life.state == "warm"
        return self


def test_one_load_however_many_wait() -> None:
    line = Line()
    assert line(LoadRequested()) == (StartEngine(1),)
    assert line(LoadRequested()) == line(LoadRequested()) == ()
    line(WaiterLeft())
    line(Progress(1, 0.5))
    line(Progress(1, 0.3))
    assert (line.life.state, line.life.progress, line.life.waiting) == ("loading", 0.5, 2)
    assert line(Ready(1)) == (Grant(1, 2),)
    assert (line.life.state, line.life.in_flight, line.life.waiting) == ("warm", 2, 0)
    assert line(LoadRequested()) == (Grant(1, 1),)


def test_idle_time_counts_from_the_end_of_the_last_request() -> None:
    line = Line(keep_alive_s=100)
    line(LoadRequested())
    line(Ready(1))
    assert wake_at(line.life, 100) is None
    assert line(Tick(), after=500) == ()
    line(RequestDone(1))
    assert wake_at(line.life, 100) == line.now + 100
    assert line(Tick(), after=99.9) == ()
    assert line(Tick(), after=0.1) == (StopEngine(1),)
    assert line.life.state == "unloading"
    assert line(Stopped(1)) == ()
    assert line.life.state == "cold"


def test_keep_alive_0_unloads_at_the_end_of_the_last_request() -> None:
    line = Line(keep_alive_s=0)
    line(LoadRequested())
    line(LoadRequested())
    line(Ready(1))
    assert line(RequestDone(1)) == ()
    assert line(RequestDone(1)) == (StopEngine(1),)
    ahead = Line(keep_alive_s=0).warm()
    assert ahead(Tick(), after=1000) == ()
    ahead(LoadRequested())
    assert ahead(RequestDone(1)) == (StopEngine(1),)


def test_keep_alive_minus_1_never_unloads() -> None:
    line = Line(keep_alive_s=-1).warm()
    assert wake_at(line.life, -1) is None
    assert line(Tick(), after=1e9) == ()


def test_a_request_while_unloading_starts_it_again_after_the_stop() -> None:
    line = Line().warm()
    assert line(Evict()) == (StopEngine(1),)
    assert line(LoadRequested()) == ()
    assert line(Stopped(1)) == (StartEngine(2),)
    assert line(Ready(1)) == ()  # of the run before
    assert line(Ready(2)) == (Grant(2, 1),)


def test_evict_and_unload_spare_what_is_in_use() -> None:
    line = Line().warm()
    line(LoadRequested())
    for event in (Evict(), Unload()):
        (effect,) = line(event)
        assert isinstance(effect, Deny)
        assert line.life.state == "warm"
    ended, stopped = line(Unload(force=True))
    assert isinstance(ended, EndStreams)
    assert ended.fault.code == "model_unloaded"
    assert stopped == StopEngine(1)
    assert line(RequestDone(1)) == ()
    line(Stopped(1))
    (denied,) = line(Evict())
    assert isinstance(denied, Deny)


def test_unload_of_a_load_refuses_who_waits() -> None:
    line = Line()
    line(LoadRequested())
    (denied,) = line(Unload())
    assert isinstance(denied, Deny)
    refused, stopped = line(Unload(force=True))
    assert isinstance(refused, Refuse)
    assert (refused.count, stopped) == (1, StopEngine(1))
    assert line(Ready(1)) == ()


def test_a_failed_load_keeps_the_useful_error_and_backs_off() -> None:
    line = Line()
    line(LoadRequested())
    line(LoadRequested())
    assert line(Failed(1, BROKEN)) == (StopEngine(1), Refuse(2, replace(BROKEN, retry_after=1)))
    assert (line.life.state, line.life.error) == ("unavailable", BROKEN)
    assert public_state(line.life) == "unavailable"
    (refused,) = line(LoadRequested(), after=0.5)
    assert isinstance(refused, Refuse)
    assert refused.fault.message == BROKEN.message
    assert refused.fault.retry_after == 1
    assert line.life.waiting == 0
    (denied,) = line(LoadRequested(waits=False))
    assert isinstance(denied, Deny)
    assert line(LoadRequested(), after=0.5) == (StartEngine(2),)
    line(Failed(2, BROKEN))
    assert line.life.retry_at == line.now + 2
    assert line(LoadRequested(waits=False, force=True)) == (StartEngine(3),)
    line(Ready(3))
    assert line.life.error is None


def test_nobody_retries_a_failed_load_unasked() -> None:
    line = Line()
    line(LoadRequested())
    line(Failed(1, BROKEN))
    assert wake_at(line.life, 100) == line.now + 1
    assert line(Tick(), after=1) == ()
    assert (line.life.state, line.life.error) == ("cold", BROKEN)


def test_no_room_has_no_back_off() -> None:
    line = Line()
    line(LoadRequested())
    assert line(Failed(1, NO_ROOM)) == (Refuse(1, NO_ROOM),)
    assert line.life.state == "cold"
    assert line(LoadRequested()) == (StartEngine(2),)


def test_a_dead_engine_is_restarted_and_requests_wait_for_it() -> None:
    line = Line().warm()
    line(LoadRequested())
    assert line(Died(1, CRASH)) == (EndStreams(1, CRASH),)
    assert public_state(line.life) == "loading"
    assert line(LoadRequested()) == ()
    assert line(Tick(), after=0.9) == ()
    assert line(Tick(), after=0.1) == (StartEngine(2),)
    assert line(Ready(2)) == (Grant(2, 1),)


def test_an_idle_engine_that_died_is_restarted_until_it_would_be_unloaded() -> None:
    line = Line(keep_alive_s=20).warm()
    starts = 0
    line(Died(1, CRASH))
    while line.life.state != "cold" and starts < 9:
        assert line.life.state == "unavailable"
        due = wake_at(line.life, 20)
        assert due is not None
        effects = line(Tick(), after=due - line.now)
        if effects:
            starts += 1
            line(Failed(line.life.run, BROKEN))
    assert starts == 4  # after 1, 3, 7 and 15 seconds; the next would be after 31


def test_requests_do_not_wait_for_a_restart_that_is_far() -> None:
    line = Line(keep_alive_s=-1).warm()
    line(Died(1, CRASH))
    for run in (2, 3, 4):
        line(Tick(), after=backoff_s(run - 1))
        line(Failed(run, BROKEN))
    assert line.life.retry_at - line.now == 8
    assert public_state(line.life) == "unavailable"
    (refused,) = line(LoadRequested())
    assert isinstance(refused, Refuse)
    assert refused.fault.retry_after == 8
    assert line(LoadRequested(), after=3) == ()
    assert line(Tick(), after=5) == (StartEngine(5),)


def test_back_off_grows_to_a_minute_and_starts_anew_after_a_stable_time() -> None:
    assert [backoff_s(n) for n in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff_s(10_000) == 60
    line = Line(keep_alive_s=-1).warm()
    line(Died(1, CRASH), after=1)
    line(Tick(), after=1)
    line(Ready(2))
    line(Died(2, CRASH), after=59)
    assert line.life.retry_at - line.now == 2
    line(Tick(), after=2)
    line(Ready(3))
    line(Died(3, CRASH), after=60)
    assert line.life.retry_at - line.now == 1


def test_an_unload_after_a_stable_time_ends_the_back_off_too() -> None:
    for stable, delay in ((True, 1), (False, 2)):
        line = Line()
        line(LoadRequested())
        line(Failed(1, BROKEN))
        line(LoadRequested(), after=1)
        line(Ready(2))
        line(RequestDone(2), after=60 if stable else 59)
        line(Evict())
        line(Stopped(2))
        line(LoadRequested())
        line(Failed(3, BROKEN))
        assert line.life.retry_at - line.now == delay


def test_unload_forgets_a_back_off() -> None:
    line = Line()
    line(LoadRequested())
    line(Failed(1, BROKEN))
    assert line(Unload()) == ()
    assert line.life.state == "cold"
    assert line(LoadRequested()) == (StartEngine(2),)


@pytest.mark.parametrize(
    ("state", "fits", "public"),
    [
        ("cold", True, "cold"),
        ("cold", False, "unavailable"),
        ("unloading", True, "cold"),
        ("loading", False, "loading"),
        ("warm", False, "warm"),
    ],
)
def test_public_states(state: lc.State, fits: bool, public: str) -> None:
    assert public_state(Life(state=state), fits) == public


class AnyHistory(RuleBasedStateMachine):
    """A runner that carries out effects, with events in any order, stale and doubled ones too."""

    def __init__(self) -> None:
        super().__init__()
        self.life = COLD
        self.now = 0.0
        self.keep_alive_s = 10
        self.alive: set[int] = set()  # engines started and not stopped or dead
        self.stopping: set[int] = set()
        self.waiting = 0
        self.answering = 0

    def send(self, event: Event) -> None:
        before = self.life
        self.life, effects = step(self.life, event, self.now, self.keep_alive_s)
        for effect in effects:
            match effect:
                case StartEngine(run):
                    assert not self.alive - self.stopping
                    assert run > before.run
                    self.alive.add(run)
                case StopEngine(run):
                    assert self.answering == 0
                    self.stopping.add(run)
                case Grant(run, count):
                    assert self.life.state == "warm"
                    assert run in self.alive - self.stopping
                    assert count <= self.waiting
                    self.waiting -= count
                    self.answering += count
                case Refuse(count, fault):
                    assert count == self.waiting
                    assert fault.message
                    self.waiting = 0
                case EndStreams(run):
                    assert run == before.run
                    self.answering = 0
                case Deny():
                    assert self.life == before

    @rule(waits=st.booleans(), force=st.booleans())
    def load(self, waits: bool, force: bool) -> None:
        self.waiting += waits
        self.send(LoadRequested(waits, force))

    @precondition(lambda self: self.waiting)
    @rule()
    def leave(self) -> None:
        self.waiting -= 1
        self.send(WaiterLeft())

    @precondition(lambda self: self.answering)
    @rule()
    def done(self) -> None:
        self.answering -= 1
        self.send(RequestDone(self.life.run))

    @rule(back=st.integers(0, 2), fraction=st.floats(allow_nan=True))
    def progress(self, back: int, fraction: float) -> None:
        self.send(Progress(self.life.run - back, fraction))

    @precondition(lambda self: self.life.state == "loading")
    @rule()
    def ready(self) -> None:
        self.send(Ready(self.life.run))

    @rule(fault=st.sampled_from([BROKEN, NO_ROOM]))
    def failed(self, fault: Fault) -> None:
        if self.life.state == "loading":
            self.alive.discard(self.life.run)
        self.send(Failed(self.life.run, fault))

    @rule()
    def died(self) -> None:
        if self.alive:
            run = max(self.alive)
            self.alive.discard(run)
            self.stopping.discard(run)
            self.send(Died(run, CRASH))

    @rule()
    def stopped(self) -> None:
        for run in sorted(self.stopping):
            self.stopping.discard(run)
            self.alive.discard(run)
            self.send(Stopped(run))

    @rule(kind=st.sampled_from([Ready, Stopped, RequestDone]), back=st.integers(1, 3))
    def stale(self, kind: type[Ready] | type[Stopped] | type[RequestDone], back: int) -> None:
        before = self.life
        self.send(kind(self.life.run - back))
        assert self.life == before

    @rule(force=st.booleans())
    def unload(self, force: bool) -> None:
        self.send(Unload(force))

    @rule()
    def evict(self) -> None:
        self.send(Evict())

    @rule(keep=st.sampled_from([-1, 0, 3, 10]))
    def change_keep_alive(self, keep: int) -> None:
        self.keep_alive_s = keep

    @rule(seconds=st.floats(0, 40))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.send(Tick())
        due = wake_at(self.life, self.keep_alive_s)
        assert due is None or due > self.now  # a due tick has acted: no timer spins

    @invariant()
    def books_agree(self) -> None:
        life = self.life
        assert life.waiting == self.waiting
        assert life.in_flight == self.answering
        assert not life.in_flight or life.state == "warm"
        near = life.state == "unavailable" and life.restarting
        assert not life.waiting or life.state in ("loading", "unloading") or near
        assert 0.0 <= life.progress <= 1.0
        assert life.state != "unavailable" or (life.error is not None and wake_at(life, 10) is not None)
        assert (life.state in ("loading", "warm")) == bool(self.alive - self.stopping)
        assert life.failures >= 0


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
