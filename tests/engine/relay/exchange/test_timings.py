from __future__ import annotations

import pytest

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.hints import Sort
from relaydesk.core.relay.target.response_time import Timing, band
from relaydesk.engine.relay.exchange import timings as module
from relaydesk.engine.relay.exchange.timings import Timings

ONE, OTHER = NodeRef(1, 1), NodeRef(2, 1)
SORTS: tuple[Sort | None, ...] = ("latency", "throughput", None)


def test_the_first_sample_counts_whole_and_later_ones_a_tenth() -> None:
    timings = Timings()
    timings.add(ONE, "m", 100, 200, 10)
    assert timings.of("m", None) == {ONE: Timing(100, 200, 10)}
    timings.add(ONE, "m", 200, 300, 20)
    assert timings.of("m", None) == {ONE: Timing(110, 210, 11)}
    timings.add(ONE, "n", 1, 1, 1)
    assert timings.of("m", None) == {ONE: Timing(110, 210, 11)}


def test_what_a_request_is_sorted_by() -> None:
    timings = Timings()
    timings.add(ONE, "m", 100, 900, 1000)
    timings.add(OTHER, "m", 100, 100, 10)
    assert timings.of("m", "price") == {}
    bands = {sort: {ref: band(one) for ref, one in timings.of("m", sort).items()} for sort in SORTS}
    assert bands["latency"] == {ONE: 2, OTHER: 0}
    assert bands["throughput"] == {ONE: 0, OTHER: 26}
    assert bands[None] == {ONE: 2, OTHER: 26}


def test_it_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    timings = Timings()
    for number in range(9):
        timings.add(NodeRef(number, 1), "m", 1, 1, 1)
    assert list(timings.of("m", None)) == [NodeRef(6, 1), NodeRef(7, 1), NodeRef(8, 1)]
