from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay import latency
from relaydesk.core.relay.latency import Latencies
from relaydesk.core.relay.ref import NodeRef

RELAY, TARGET, OTHER = NodeRef(1, 0), NodeRef(2, 0), NodeRef(3, 0)


def test_a_mean_needs_two_samples_and_weighs_the_new_one_less() -> None:
    kept = Latencies()
    assert kept.add(RELAY, TARGET, 100.0, 0.0, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 0.0) is None
    kept.add(RELAY, TARGET, 200.0, 1.0, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 1.0) == pytest.approx(130.0)
    kept.add(RELAY, TARGET, 30.0, 2.0, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 2.0) == pytest.approx(100.0)


def test_it_goes_stale_and_starts_anew() -> None:
    kept = Latencies()
    for now in (0.0, 1.0):
        kept.add(RELAY, TARGET, 100.0, now, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 301.0) == 100.0
    assert kept.rtt_ms(RELAY, TARGET, 301.1) is None
    kept.add(RELAY, TARGET, 500.0, 302.0, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 302.0) is None
    kept.add(RELAY, TARGET, 500.0, 303.0, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 303.0) == 500.0


def test_a_pair_falls_back_to_the_relay_as_a_whole() -> None:
    kept = Latencies()
    kept.add(RELAY, TARGET, 100.0, 0.0, 0.0)
    kept.add(RELAY, OTHER, 200.0, 0.0, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 0.0) == pytest.approx(130.0)
    assert kept.rtt_ms(RELAY, NodeRef(9, 9), 0.0) == kept.relay_ms(RELAY, 0.0) == pytest.approx(130.0)
    kept.add(RELAY, OTHER, 200.0, 0.0, 0.0)
    assert kept.rtt_ms(RELAY, OTHER, 0.0) == pytest.approx(200.0)
    assert kept.rtt_ms(TARGET, RELAY, 0.0) is None
    assert kept.history(RELAY) == (100.0, 200.0, 200.0)
    assert kept.history(TARGET) == ()


@pytest.mark.parametrize("rtt", [-1.0, math.nan, math.inf, 600_001.0])
def test_what_is_no_round_trip_is_dropped(rtt: float) -> None:
    kept = Latencies()
    assert not kept.add(RELAY, TARGET, rtt, 0.0, 0.0)
    assert kept.history(RELAY) == ()


@pytest.mark.parametrize("stall", [10.1, 500.0, math.nan, math.inf])
def test_a_sample_of_a_stalled_loop_is_dropped(stall: float) -> None:
    kept = Latencies()
    kept.add(RELAY, TARGET, 50.0, 0.0, 10.0)
    assert not kept.add(RELAY, TARGET, 5000.0, 0.0, stall)
    kept.add(RELAY, TARGET, 50.0, 0.0, 0.0)
    assert kept.rtt_ms(RELAY, TARGET, 0.0) == 50.0


def test_memory_is_bounded_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "MOST_PAIRS", 4)
    monkeypatch.setattr(latency, "MOST_RELAYS", 3)
    kept = Latencies()
    for number in range(3):
        for _ in range(100):
            kept.add(NodeRef(number, 0), TARGET, 10.0 * number, 0.0, 0.0)
    kept.add(NodeRef(0, 0), TARGET, 0.0, 0.0, 0.0)
    kept.add(NodeRef(7, 0), TARGET, 70.0, 0.0, 0.0)
    assert kept.relay_ms(NodeRef(1, 0), 0.0) is None, "it was used longest ago"
    assert kept.relay_ms(NodeRef(0, 0), 0.0) == 0.0
    assert len(kept.history(NodeRef(2, 0))) == latency.HISTORY
    for number in range(50):
        kept.add(RELAY, NodeRef(5, number), 1.0, 0.0, 0.0)
    assert len(kept._pairs) == 4 and len(kept._relays) == 3


def test_a_relay_that_moved_is_measured_anew() -> None:
    kept = Latencies()
    for relay in (RELAY, OTHER):
        for _ in range(2):
            kept.add(relay, TARGET, 10.0, 0.0, 0.0)
    kept.forget(RELAY)
    assert kept.rtt_ms(RELAY, TARGET, 0.0) is None and kept.history(RELAY) == ()
    assert kept.rtt_ms(OTHER, TARGET, 0.0) == 10.0


@given(st.lists(st.floats(0, 5000), min_size=2, max_size=30))
def test_a_mean_lies_among_its_samples(samples: list[float]) -> None:
    kept = Latencies()
    for number, sample in enumerate(samples):
        kept.add(RELAY, TARGET, sample, float(number), 0.0)
    mean = kept.rtt_ms(RELAY, TARGET, float(len(samples)))
    assert mean is not None and min(samples) - 1e-6 <= mean <= max(samples) + 1e-6
