from __future__ import annotations

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.reputation import Observation
from relaydesk.engine.relay.asking import reputations as module
from relaydesk.engine.relay.asking.reputations import Reputations
from tests.support.clock import FakeClock

RELAY, TARGET = NodeRef(2, 1), NodeRef(1, 1)
SEEN = Observation(0, TARGET, 503, "relay_busy", True, "relay_refused")


def book() -> tuple[Reputations, FakeClock]:
    clock = FakeClock()
    return Reputations(clock, lambda: 360.0), clock


def test_a_success_makes_a_relay_reachable_for_a_while() -> None:
    reputations, clock = book()
    assert reputations.tier(RELAY) == "cold"
    assert reputations.credit(RELAY, "success", SEEN)
    assert not reputations.credit(RELAY, "success", SEEN)
    clock.advance(360)
    assert reputations.tier(RELAY) == "reachable"
    # Nothing was ever charged to it, but nothing came through it either.
    clock.advance(1)
    assert reputations.tier(RELAY) == "cold"
    assert reputations.get(RELAY).faults == 0


def test_three_faults_demote_until_time_or_a_success_ends_it() -> None:
    reputations, clock = book()
    reputations.credit(RELAY, "success", SEEN)
    changed = [reputations.credit(RELAY, "fault", SEEN) for _ in range(3)]
    assert changed == [False, False, True]
    assert reputations.tier(RELAY) == "demoted"
    assert reputations.until_ms(RELAY) == clock.wall_ms() + 600_000
    assert "3 failures in a row" in reputations.explain(RELAY)
    clock.advance(30)
    assert reputations.until_ms(RELAY) == clock.wall_ms() + 570_000
    assert reputations.credit(RELAY, "success", SEEN)
    assert (reputations.tier(RELAY), reputations.until_ms(RELAY)) == ("reachable", 0)


def test_no_entry_for_what_charges_nobody() -> None:
    reputations, _ = book()
    assert not reputations.credit(RELAY, None, SEEN)
    assert reputations.get(RELAY) == module.NEW


def test_stale_details_have_a_streak_of_their_own() -> None:
    reputations, _ = book()
    reputations.credit(RELAY, "success", SEEN)
    for _ in range(3):
        reputations.details(RELAY, is_stale=True, seen=SEEN)
        reputations.credit(RELAY, "success", SEEN)
    assert reputations.tier(RELAY) == "demoted"
    assert (reputations.get(RELAY).stale, reputations.get(RELAY).faults) == (3, 0)
    reputations.details(RELAY, is_stale=False, seen=SEEN)
    assert reputations.tier(RELAY) == "reachable"


def test_who_is_listed_no_more_is_forgotten() -> None:
    reputations, clock = book()
    other = NodeRef(3, 1)
    for relay in (RELAY, other):
        reputations.credit(relay, "unreachable", SEEN)
        for _ in range(2):
            reputations.latencies.add(relay, TARGET, 20.0, clock.mono(), 0.0)
    assert reputations.rtt_ms(RELAY) == reputations.rtt_ms(RELAY, TARGET) == 20.0
    reputations.keep({other})
    assert (reputations.tier(RELAY), reputations.rtt_ms(RELAY)) == ("cold", None)
    assert (reputations.tier(other), reputations.rtt_ms(other, TARGET)) == ("demoted", 20.0)


def test_the_book_is_bounded() -> None:
    reputations, _ = book()
    for number in range(module.MOST_RELAYS + 10):
        reputations.credit(NodeRef(number, 1), "unreachable", SEEN)
    assert reputations.tier(NodeRef(9, 1)) == "cold"
    assert reputations.tier(NodeRef(10, 1)) == "demoted"
