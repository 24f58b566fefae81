from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import Fault
from relaydesk.core.relay.exchange.again import Again, Next
from relaydesk.core.relay.exchange.nobody import Kind, Passed, unserved
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.schedule import OVERALL_MS

ONE, TWO, THREE = NodeRef(7, 1), NodeRef(8, 1), NodeRef(9, 1)
KINDS: tuple[Kind, ...] = ("unreachable", "no_relay", "no_key", "no_credit", "busy", "unavailable", "refused")


def passed(ref: NodeRef, kind: Kind, retry_after: int | None = None) -> Passed:
    return Passed(ref, kind, Fault("operators_busy", kind, retry_after=retry_after))


def waits(*became: Passed) -> list[int]:
    """What is waited where every question comes to the same, and takes no time."""
    again, left, found = Again(), OVERALL_MS, list[int]()
    asked = frozenset(each.ref for each in became)
    while (then := again.after([each for each in became if each.ref in asked], left)) is not None:
        found.append(then.delay_ms)
        left, asked = left - then.delay_ms, then.refs
    return found


def test_what_is_not_reached_is_swept_by_the_wires_table() -> None:
    assert waits(passed(ONE, "unreachable")) == [4_000, 12_000, 30_000]
    assert waits(passed(ONE, "unavailable"), passed(TWO, "no_relay")) == [4_000, 12_000, 30_000]
    assert waits(passed(ONE, "unavailable", 20)) == [20_000, 20_000]
    assert waits(passed(ONE, "no_relay")) == []


def test_a_place_is_asked_for_within_the_minute() -> None:
    assert waits(passed(ONE, "busy")) == [2_000, 2_000, 4_000, 4_000, *[8_000] * 5]
    assert waits(passed(ONE, "busy", 2)) == [2_000, 2_000, 4_000, 4_000, *[8_000] * 5]
    assert waits(passed(ONE, "busy", 25)) == [25_000, 25_000]
    assert waits(passed(ONE, "busy", 60)) == []


@pytest.mark.parametrize("kind", ["no_key", "refused"])
@pytest.mark.parametrize("other", ["busy", "unavailable", "unreachable"])
def test_a_considered_refusal_is_the_end(kind: Kind, other: Kind) -> None:
    assert waits(passed(ONE, other), passed(TWO, kind)) == []


def test_one_without_our_credit_keeps_nobody_from_the_others_and_is_not_asked_again() -> None:
    again = Again()
    then = again.after([passed(ONE, "no_credit"), passed(TWO, "busy", 2)], OVERALL_MS)
    assert then == Next(2_000, frozenset({TWO}))
    assert {each.kind for each in again.passed} == {"no_credit", "busy"}
    assert unserved(again.passed).code == "operators_busy"
    again = Again()
    then = again.after([passed(ONE, "no_credit"), passed(TWO, "unreachable")], OVERALL_MS)
    assert then == Next(4_000, frozenset({TWO}))
    assert waits(passed(ONE, "no_credit")) == []


def test_each_target_is_asked_no_sooner_than_it_says() -> None:
    again = Again()
    became = [passed(ONE, "busy", 2), passed(TWO, "busy", 7), passed(THREE, "unreachable")]
    assert again.after(became, 60_000) == Next(2_000, frozenset({ONE}))
    assert again.after(became[:1], 58_000) == Next(2_000, frozenset({ONE}))
    assert again.after(became[:1], 56_000) == Next(4_000, frozenset({ONE, TWO}))
    # With nobody left to wait for, all are swept.
    gone = [passed(ONE, "unreachable"), passed(TWO, "unreachable")]
    assert again.after(gone, 52_000) == Next(4_000, frozenset({ONE, TWO, THREE}))


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.none() | st.integers(0, 90)), min_size=1, max_size=5))
def test_it_ends_within_the_minute_and_asks_only_who_was_asked(became: list[tuple[Kind, int | None]]) -> None:
    told = [passed(NodeRef(at + 1, 1), *each) for at, each in enumerate(became)]
    refs = {each.ref for each in told if each.kind != "no_credit"}
    again, left, asked = Again(), OVERALL_MS, frozenset(each.ref for each in told)
    for _ in range(20):
        then = again.after([each for each in told if each.ref in asked], left)
        if then is None:
            break
        assert then.refs and then.refs <= refs
        assert 0 < then.delay_ms < left
        left, asked = left - then.delay_ms, then.refs
    else:
        raise AssertionError("it never ends")
