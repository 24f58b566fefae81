from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.blame import Evidence, classify, narrow
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.reputation import (
    MOST_EVIDENCE,
    NEW,
    At,
    Observation,
    Reputation,
    credit,
    credit_of,
    demoted,
    explain,
    fault,
    fresh,
    stale,
    success,
    unreachable,
)

TARGET = NodeRef(7, 2)
# 14:00:00 UTC of some day, at a second of the other clock that has nothing to do with it.
NOON = 1_700_056_800_000
MINUTE = 60.0


def at(seconds: float) -> At:
    return At(1000.0 + seconds, NOON + round(seconds * 1000))


def seen(
    seconds: float = 0.0, status: int = 502, code: str = "", rule: str = "unmarked_front_door"
) -> Observation:
    return Observation(at(seconds).wall_ms, TARGET, status, code, False, rule)


def after(*events: tuple[str, float], start: Reputation = NEW) -> Reputation:
    """The state after events, each a kind and a second."""
    state = start
    for kind, second in events:
        if kind == "fresh":
            state = fresh(state, at(second))
            continue
        step = {"fault": fault, "success": success, "unreachable": unreachable, "stale": stale}[kind]
        state = step(state, at(second), seen(second))
    return state


def length(state: Reputation, now: float) -> float:
    """For how long the relay is demoted from a second on."""
    return max(0.0, state.demotion.until - at(now).mono) if state.demotion else 0.0


def test_three_failures_in_a_row_demote_for_ten_minutes() -> None:
    two = after(("fault", 0), ("fault", 1))
    assert not demoted(two, at(1).mono) and two.faults == 2
    three = after(("fault", 2), start=two)
    assert demoted(three, at(2).mono) and length(three, 2) == 10 * MINUTE
    assert demoted(three, at(601.9).mono) and not demoted(three, at(602).mono)


def test_a_success_between_starts_the_count_anew() -> None:
    state = after(("fault", 0), ("fault", 1), ("success", 2), ("fault", 3), ("fault", 4))
    assert not demoted(state, at(4).mono) and state.faults == 2


def test_one_success_restores_at_once() -> None:
    state = after(("fault", 0), ("fault", 1), ("fault", 2), ("success", 30))
    assert not demoted(state, at(30).mono) and state.faults == 0
    assert not demoted(after(("unreachable", 0), ("success", 5)), at(5).mono)


def test_failing_again_after_its_time_lasts_twice_as_long_up_to_an_hour() -> None:
    state = after(("fault", 0), ("fault", 0), ("fault", 0))
    now, lengths = 0.0, []
    for _ in range(5):
        lengths.append(length(state, now) / MINUTE)
        now += length(state, now)
        state = after(("fault", now), start=state)
    assert lengths == [10, 20, 40, 60, 60]


def test_a_calm_hour_makes_the_next_one_short_again() -> None:
    three = [("fault", 0.0)] * 3
    soon = after(*three, ("success", 60), *[("fault", 3659.0)] * 3)
    assert length(soon, 3659) == 20 * MINUTE
    late = after(*three, ("success", 60), *[("fault", 3660.0)] * 3)
    assert length(late, 3660) == 10 * MINUTE


def test_failures_while_demoted_do_not_prolong_it() -> None:
    state = after(*[("fault", 0.0)] * 3, *[("fault", float(second)) for second in range(1, 600, 60)])
    assert length(state, 0) == 10 * MINUTE and state.level == 0


def test_unreachable_demotes_faster_and_shorter() -> None:
    state = after(("unreachable", 0))
    assert demoted(state, at(0).mono) and length(state, 0) == 2 * MINUTE
    again = after(("unreachable", 120), start=state)
    assert length(again, 120) == 4 * MINUTE


def test_three_failures_demote_for_ten_minutes_whatever_their_mix() -> None:
    for kinds in itertools.product(["fault", "unreachable"], repeat=3):
        state = after(*[(kind, float(second)) for second, kind in enumerate(kinds)])
        assert length(state, 2) == 10 * MINUTE, kinds


def test_stale_details_have_a_streak_of_their_own() -> None:
    state = after(("stale", 0), ("success", 0), ("stale", 1), ("success", 1))
    assert state.stale == 2 and not demoted(state, at(1).mono)
    demotion = after(("stale", 2), ("success", 2), start=state)
    assert demoted(demotion, at(2).mono) and length(demotion, 2) == 10 * MINUTE, "answering does not clear it"
    assert not demoted(after(("fresh", 3), start=demotion), at(3).mono)
    assert after(("fresh", 3), start=state).stale == 0
    # The two streaks do not add up.
    assert not demoted(after(("stale", 0), ("stale", 0), ("fault", 0), ("fault", 0)), at(0).mono)
    assert after(("fault", 0), ("fresh", 1)).faults == 1


def test_fresh_details_do_not_forgive_failures() -> None:
    state = after(*[("fault", 0.0)] * 3, ("fresh", 1))
    assert demoted(state, at(1).mono)


def test_evidence_is_bounded_and_the_newest_stays() -> None:
    state = after(*[("fault", float(second)) for second in range(50)])
    assert len(state.evidence) == MOST_EVIDENCE
    assert state.evidence[-1] == state.last == seen(49)


CHARGED = [
    (503, "relay_busy", {}, "fault"),
    (404, "relay_unknown_target", {}, "fault"),
    (502, "", {"relay_marks_hops": True}, "fault"),
    (0, "", {}, "fault"),
    (0, "", {"connected": False}, "unreachable"),
    (0, "", {"connected": False, "caller_aborted": True}, None),
    (502, "", {"relay_marks_hops": True, "caller_aborted": True}, None),
    (200, "", {"caller_aborted": True}, None),
    (502, "", {}, None),
    (504, "", {"relay_marks_hops": True}, None),
    (502, "relay_upstream_unreachable", {"hop_marker": True}, None),
    (503, "", {"hop_marker": True}, None),
    (200, "", {}, "success"),
    (204, "", {}, "success"),
    (402, "ticket_required", {}, "success"),
    (503, "provider_unavailable", {}, "success"),
    (403, "", {}, None),
    (302, "", {}, None),
]


@pytest.mark.parametrize(("status", "code", "known", "wanted"), CHARGED)
def test_what_is_credited(status: int, code: str, known: dict[str, bool], wanted: str | None) -> None:
    aborted = known.get("caller_aborted", False)
    evidence = Evidence(True, known.get("hop_marker", False), known.get("relay_marks_hops", False), aborted)
    verdict = narrow(classify(status, code), status, evidence)
    connected = known.get("connected", True)
    assert credit_of(verdict, status, code, connected=connected, aborted=aborted) == wanted


def test_crediting_does_what_the_events_do() -> None:
    assert credit(NEW, None, at(0), seen()) is NEW
    assert credit(NEW, "fault", at(0), seen()) == fault(NEW, at(0), seen())
    assert credit(NEW, "success", at(0), seen()) == success(NEW, at(0), seen())
    assert credit(NEW, "unreachable", at(0), seen()) == unreachable(NEW, at(0), seen())


def test_a_demotion_is_told_in_one_sentence() -> None:
    state = after(("fault", 0), ("fault", 30), ("fault", 60))
    assert explain(state, at(90)) == (
        "Demoted since 14:01:00 until 14:11:00 UTC: 3 failures in a row, the last for 7:2 "
        "(502 without a code, unmarked; the hop marker is missing, so something in front of the "
        "relay answered in its place)."
    )
    gone = unreachable(NEW, at(0), Observation(NOON, TARGET, 0, "", False, "no_answer"))
    assert explain(gone, at(1)) == (
        "Demoted since 14:00:00 until 14:02:00 UTC: it could not be reached, the last for 7:2 "
        "(no answer; the relay gave no HTTP answer at all)."
    )


def test_a_clock_that_was_set_moves_the_end_and_not_the_length() -> None:
    state = after(*[("fault", 0.0)] * 3)
    set_back = At(at(60).mono, at(60).wall_ms - 3_600_000)
    assert "until 13:10:00 UTC" in explain(state, set_back)


def test_what_is_told_of_a_relay_in_use() -> None:
    assert explain(NEW, at(0)) == "In use: nothing speaks against it."
    told = explain(after(("fault", 0), ("stale", 5)), at(6))
    assert told.startswith(
        "In use with 1 of 3 failures and 1 of 3 stale details in a row, the last at 14:00:05 UTC"
    )
    assert "3 of 3 failures" in explain(after(*[("fault", 0.0)] * 5), at(700))
    assert explain(after(("fault", 0), ("success", 1)), at(2)) == explain(NEW, at(2))


events = st.lists(
    st.tuples(st.sampled_from(["fault", "success", "unreachable", "stale", "fresh"]), st.floats(0, 2000)),
    max_size=40,
)


@given(events)
def test_whatever_happens_the_rules_hold(steps: list[tuple[str, float]]) -> None:
    state, now, faults, stales = NEW, 0.0, 0, 0
    for kind, pause in steps:
        now += pause
        before = state
        state = after((kind, now), start=state)
        faults = 0 if kind == "success" else faults + (kind in ("fault", "unreachable"))
        stales = 0 if kind == "fresh" else stales + (kind == "stale")
        assert (state.faults, state.stale) == (faults, stales)
        assert length(state, now) <= 3600
        assert len(state.evidence) <= MOST_EVIDENCE
        if kind == "unreachable" or (kind == "fault" and faults >= 3) or (kind == "stale" and stales >= 3):
            assert demoted(state, at(now).mono)
        if demoted(state, at(now).mono) and not demoted(before, at(now).mono):
            assert kind in ("fault", "unreachable", "stale")
        if kind == "success" and demoted(state, at(now).mono):
            assert state.demotion is not None and state.demotion.cause == "stale"
        told = explain(state, at(now))
        assert told.count("\n") == 0 and told.endswith(".") and told.count(". ") == 0
        assert told.startswith("Demoted") == demoted(state, at(now).mono)
        assert not demoted(state, at(now).mono + 3600)
