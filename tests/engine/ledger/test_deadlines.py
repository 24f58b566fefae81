from __future__ import annotations

from relaydesk.core.ledger.records import Claim
from relaydesk.core.ledger.ticket import SignedClaim, Ticket
from relaydesk.engine.ledger.deadlines import Deadlines
from tests.support.clock import FakeClock
from tests.support.ledger_rig import VALUES, ticket_id

TX = "A" * 52
NOW_S = 1_700_000_000


def ticket(**changes: object) -> Ticket:
    fields = {"expires_at": NOW_S + 100, "opened_ms": NOW_S * 1000, "grace_s": 600, **changes}
    return Ticket(TX, ticket_id(1), "p", "m", 10, **fields)  # type: ignore[arg-type]


def test_the_wall_clock_counts_once() -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock)
    deadlines.watch(ticket())
    clock.set_wall_ms(clock.wall_ms() + 10**10)
    assert deadlines.over() == ()
    assert deadlines.now_s(ticket()) == NOW_S
    clock.advance(699.5)
    assert (deadlines.over(), deadlines.now_s(ticket())) == ((), NOW_S + 699)
    clock.advance(0.5)
    assert (deadlines.over(), deadlines.now_s(ticket())) == ((TX,), NOW_S + 700)
    deadlines.forget(TX)
    assert (deadlines.over(), len(deadlines)) == ((), 0)


def test_a_clock_that_was_set_back_holds_nothing_for_years() -> None:
    clock = FakeClock(wall_ms=0)
    deadlines = Deadlines(clock)
    deadlines.watch(ticket())
    clock.advance(3600 + 600)
    assert deadlines.over() == (TX,)


def test_what_is_late_already_is_over_at_once() -> None:
    deadlines = Deadlines(FakeClock(wall_ms=(NOW_S + 10_000) * 1000))
    deadlines.watch(ticket())
    assert deadlines.over() == (TX,)


def test_the_watchdog_begins_with_the_receipt() -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock, watchdog_s=30)
    deadlines.watch(ticket())
    clock.advance(50)
    assert deadlines.unclaimed() == ()
    deadlines.received(TX)
    clock.advance(29)
    deadlines.received(TX)
    assert deadlines.unclaimed() == ()
    clock.advance(1)
    assert deadlines.unclaimed() == (TX,)
    deadlines.filed(TX)
    assert deadlines.unclaimed() == ()


def test_after_a_restart_the_watchdog_goes_on() -> None:
    claim = SignedClaim(Claim(TX, ticket_id(1), "node", VALUES), "sig")
    clock = FakeClock(wall_ms=(NOW_S + 20) * 1000)
    deadlines = Deadlines(clock, watchdog_s=30)
    deadlines.watch(ticket(receipt=claim, receipt_ms=NOW_S * 1000))
    clock.advance(9)
    assert deadlines.unclaimed() == ()
    clock.advance(1)
    assert deadlines.unclaimed() == (TX,)
    deadlines.watch(ticket(state="settled"))
    assert len(deadlines) == 1
