from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.blame import (
    CLASSIFY,
    FRONT_DOOR,
    NARROW,
    PROBE,
    RULES,
    TRANSIENT,
    Evidence,
    Verdict,
    classify,
    front_door,
    narrow,
    probe_blame,
    safe_after_payment,
)
from relaydesk.core.relay.catalogue import CATALOGUE, RELAY_REFUSALS, UPSTREAM_UNREACHABLE

EVIDENCE = [Evidence(*flags) for flags in itertools.product([False, True], repeat=4)]
NEW_RELAY = Evidence(relayed=True, hop_marker=False, relay_marks_hops=True, caller_aborted=False)
OLD_RELAY = Evidence(relayed=True, hop_marker=False, relay_marks_hops=False, caller_aborted=False)
MARKED = Evidence(relayed=True, hop_marker=True, relay_marks_hops=True, caller_aborted=False)
CODES = ["", "x", "relay_new", "rate_limited", *RELAY_REFUSALS, UPSTREAM_UNREACHABLE]
STATUSES = [0, *range(100, 600)]

# Written out from the wire's text, not taken from the code.
FRONT = {425, 429, 500, 502, 503, 520, 521, 522, 523, 525, 526, 527}
PASSING = {0, 408, 425, 429, 500, 502, 503, 504, *range(520, 528)}


def decided(status: int, evidence: Evidence, code: str = "") -> tuple[str, str]:
    verdict = narrow(classify(status, code), status, evidence)
    return verdict.attribution, verdict.rule


def test_the_two_lists_of_statuses() -> None:
    assert {status for status in range(-1, 1000) if front_door(status)} == FRONT == FRONT_DOOR
    assert TRANSIENT == PASSING
    assert {0, 408, 504, 524} == TRANSIENT - FRONT_DOOR


@pytest.mark.parametrize("code", RELAY_REFUSALS)
def test_a_relays_refusal_is_its_own_whatever_the_status(code: str) -> None:
    for status in (0, 200, 400, 404, 502, 503):
        assert classify(status, code) == Verdict(True, "relay", "relay_refused")
    assert safe_after_payment(code)


def test_a_relays_claim_about_the_target() -> None:
    assert classify(502, UPSTREAM_UNREACHABLE) == Verdict(True, "target", "target_unreachable")
    assert not safe_after_payment(UPSTREAM_UNREACHABLE)


@pytest.mark.parametrize(
    "code", [c for c in [*CATALOGUE, "relay_new", "x"] if c not in RELAY_REFUSALS | {UPSTREAM_UNREACHABLE}]
)
def test_any_other_code_speaks_for_itself(code: str) -> None:
    for status in PASSING:
        assert classify(status, code) == Verdict(False, "none", "own_code")
    assert not safe_after_payment(code)


def test_without_a_code_the_status_decides() -> None:
    for status in STATUSES:
        wanted = (
            Verdict(True, "unknown", "transient") if status in PASSING else Verdict(False, "none", "final")
        )
        assert classify(status, "") == wanted
    assert not safe_after_payment("")


def test_narrowing_changes_who_and_never_whether() -> None:
    for status, code, evidence in itertools.product([0, 200, 404, *PASSING], CODES, EVIDENCE):
        verdict = classify(status, code)
        after = narrow(verdict, status, evidence)
        assert after.retryable == verdict.retryable
        if verdict.attribution != "unknown":
            assert after == verdict
        elif not evidence.relayed or evidence.caller_aborted:
            assert after.attribution == "unknown"


@pytest.mark.parametrize("status", sorted(PASSING))
def test_who_is_charged_for_a_failure_without_a_code(status: int) -> None:
    if status == 0:
        for evidence in (NEW_RELAY, OLD_RELAY, MARKED):
            assert decided(0, evidence) == ("relay", "no_answer")
        return
    assert decided(status, MARKED) == ("target", "marked")
    assert decided(status, OLD_RELAY) == ("unknown", "unattributed")
    unmarked = ("relay", "unmarked_front_door") if status in FRONT else ("unknown", "unattributed")
    assert decided(status, NEW_RELAY) == unmarked


def test_a_marker_needs_no_version_and_a_direct_one_means_nothing() -> None:
    assert decided(504, Evidence(True, True, False, False)) == ("target", "marked")
    assert decided(504, Evidence(False, True, True, False)) == ("unknown", "direct")


@pytest.mark.parametrize("status", [0, 408, 429, 502, 504, 522])
def test_our_own_cancel_charges_nobody(status: int) -> None:
    for marker, version in itertools.product([False, True], repeat=2):
        gone = Evidence(True, marker, version, True)
        assert decided(status, gone) == ("unknown", "caller_aborted")
        assert probe_blame(status, "", gone).attribution == "unknown"


def test_a_probe_looks_for_the_marker_before_the_code() -> None:
    assert probe_blame(429, "rate_limited", NEW_RELAY) == Verdict(False, "relay", "probe_unmarked_front_door")
    assert probe_blame(502, UPSTREAM_UNREACHABLE, NEW_RELAY).attribution == "relay"
    assert decided(429, NEW_RELAY, "rate_limited") == ("none", "own_code")
    # Only statuses of a front door, only relays that promised the marker, only through a relay.
    assert probe_blame(504, "x", NEW_RELAY) == classify(504, "x")
    assert probe_blame(429, "x", OLD_RELAY) == classify(429, "x")
    assert probe_blame(429, "x", Evidence(False, False, True, False)) == classify(429, "x")
    assert probe_blame(429, "x", MARKED) == classify(429, "x")


def test_a_probe_is_otherwise_judged_like_a_request() -> None:
    for status, code, evidence in itertools.product([0, 200, *PASSING], CODES, EVIDENCE):
        verdict = probe_blame(status, code, evidence)
        if verdict.rule != "probe_unmarked_front_door":
            assert verdict == narrow(classify(status, code), status, evidence)


@given(st.integers(-1000, 1000), st.text(max_size=30), st.sampled_from(EVIDENCE))
def test_every_answer_has_a_rule_with_a_sentence(status: int, code: str, evidence: Evidence) -> None:
    for verdict in (narrow(classify(status, code), status, evidence), probe_blame(status, code, evidence)):
        assert RULES[verdict.rule]


def test_rules_have_ids_of_their_own_and_one_short_sentence() -> None:
    ids = [row.rule for row in (*CLASSIFY, *NARROW, *PROBE)]
    assert len(ids) == len(set(ids)) and set(ids) < set(RULES)
    for sentence in RULES.values():
        assert len(sentence) <= 100 and "." not in sentence and sentence[0].islower()
