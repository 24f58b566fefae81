"""Bands of response time: who goes first among nodes that are alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import Candidate
from relaydesk.core.relay.target.response_time import Timing, band, by_response_time
from relaydesk.core.relay.target.selection import Selection


def selection(*groups: int) -> Selection:
    nodes = tuple(Candidate(NodeRef(1, number), "9.10", ("m",)) for number in range(len(groups)))
    return Selection(nodes, groups, served_by=len(groups))


def order(chosen: Selection) -> list[int]:
    return [node.ref.node for node in chosen.nodes]


def timing(ms: float) -> Timing:
    return Timing(ms / 2, ms / 2, float("inf"))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (Timing(100, 300, 128), 3),
        (Timing(0, 0, 256), 1),
        (Timing(0, 249, float("inf")), 0),
        (Timing(0, 250, float("inf")), 1),
        (Timing(0, 1250, float("inf")), 3),
        (Timing(0, 0, 0), None),
        (Timing(0, 0, -1), None),
        (Timing(0, 0, float("nan")), None),
        (Timing(float("inf"), 0, 1), None),
        (Timing(-5, 0, float("inf")), None),
    ],
)
def test_bands(known: Timing, expected: int | None) -> None:
    assert band(known) == expected


def test_price_order_stands_within_a_band() -> None:
    timings = {NodeRef(1, 0): timing(900), NodeRef(1, 1): timing(100), NodeRef(1, 2): timing(200)}
    assert order(by_response_time(selection(0, 0, 0), timings)) == [1, 2, 0]


def test_unknown_nodes_are_in_the_median_band() -> None:
    timings = {NodeRef(1, 1): timing(2000), NodeRef(1, 2): timing(0), NodeRef(1, 3): timing(1000)}
    assert order(by_response_time(selection(0, 0, 0, 0), timings)) == [2, 0, 3, 1]
    assert order(by_response_time(selection(0, 0), {})) == [0, 1]


def test_groups_keep_their_places() -> None:
    timings = {NodeRef(1, number): timing(2000 - 600 * number) for number in range(4)}
    assert order(by_response_time(selection(0, 1, 1, 2), timings)) == [0, 2, 1, 3]


@given(st.lists(st.integers(0, 2), max_size=8).map(sorted), st.lists(st.floats(), min_size=8, max_size=8))
def test_nobody_is_lost(groups: list[int], speeds: list[float]) -> None:
    before = selection(*groups)
    timings = {node.ref: Timing(1, 1, speed) for node, speed in zip(before.nodes, speeds, strict=False)}
    after = by_response_time(before, timings)
    assert sorted(order(after)) == order(before) and after.groups == before.groups
