"""What a node declares, and what that means for a request."""

from __future__ import annotations

import pytest

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import LEAST_SPENDABLE, UNDECLARED, Candidate, Capacity


def node(capacity: Capacity | None = None, **fields: object) -> Candidate:
    capacities = {} if capacity is None else {"m": capacity}
    return Candidate(NodeRef(1, 0), "9.10", ("m",), capacities, **fields)  # type: ignore[arg-type]


def test_only_what_is_listed_is_served() -> None:
    assert node().serves("m") and not node().serves("M") and not node().serves("")
    assert not Candidate(NodeRef(1, 0), "9.10", ()).serves("m")
    assert node().capacity("other") == UNDECLARED


@pytest.mark.parametrize(
    ("capacity", "fits"),
    [
        (None, True),
        (Capacity(), True),
        (Capacity(context_window=300), True),
        (Capacity(context_window=299), False),
        (Capacity(max_output_tokens=200), True),
        (Capacity(max_output_tokens=199), False),
        (Capacity(context_window=9999, max_output_tokens=199), False),
    ],
)
def test_what_fits(capacity: Capacity | None, fits: bool) -> None:
    assert node(capacity).fits("m", 100, 200) is fits


def test_a_balance_that_is_not_known_passes() -> None:
    assert not node().underfunded
    assert node(spendable=0).underfunded and node(spendable=LEAST_SPENDABLE - 1).underfunded
    assert not node(spendable=LEAST_SPENDABLE).underfunded
