from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.core.relay.reputation import Observation
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.relay.asking.peers import Peers
from relaydesk.engine.relay.asking.reputations import Reputations
from tests.support.clock import FakeClock, FakeRng
from tests.support.lab_network import ListedNodes

TARGET = NodeRef(1, 1)
SEEN = Observation(0, TARGET, 200, "", True, "final")


def listed(operator: int, node: int = 1, owner: str = "", url: str = "") -> Listed:
    return Listed(
        NodeRef(operator, node), owner or f"owner{operator}", "S", url or f"https://n{operator}.example"
    )


def choice(
    nodes: Sequence[Listed], own: NodeRef | None = None
) -> tuple[Choice, Peers, Reputations, FakeClock]:
    clock = FakeClock()
    directory = ListedNodes({each.ref: each for each in nodes})
    peers = Peers(directory, own, clock)
    reputations = Reputations(clock, lambda: 360.0)
    return Choice(peers, reputations, FakeRng()), peers, reputations, clock


def test_who_may_relay() -> None:
    nodes = [
        listed(1, url="https://8.8.1.1"),
        listed(1, 2),
        listed(2, owner="owner1"),
        listed(3, url="https://8.8.2.2"),
        listed(4),
        listed(5),
        listed(6),
    ]
    chosen, peers, _, _ = choice(nodes, own=NodeRef(6, 1))
    list(peers)
    speaks_another = peers.get(NodeRef(5, 1))
    assert speaks_another is not None
    speaks_another.version = "10.0"
    assert chosen.eligible(TARGET) == [NodeRef(4, 1)]
    assert chosen.may_relay(NodeRef(4, 1), TARGET)
    for other in (NodeRef(1, 2), NodeRef(2, 1), NodeRef(3, 1), NodeRef(5, 1), NodeRef(6, 1), NodeRef(9, 9)):
        assert not chosen.may_relay(other, TARGET)
    assert {chosen.draw(TARGET) for _ in range(20)} == {NodeRef(4, 1)}
    assert chosen.draw(TARGET, [NodeRef(4, 1)]) is None
    assert chosen.draw(NodeRef(9, 9)) is None
    assert chosen.eligible(NodeRef(9, 9)) == []


def test_reachable_relays_come_first_and_cold_ones_are_the_fallback() -> None:
    chosen, _, reputations, _ = choice([listed(number) for number in range(1, 6)])
    reputations.credit(NodeRef(3, 1), "success", SEEN)
    assert {chosen.draw(TARGET) for _ in range(30)} == {NodeRef(3, 1)}
    # One that was tried already makes room for those of which nothing is known.
    assert {chosen.draw(TARGET, [NodeRef(3, 1)]) for _ in range(60)} == {
        NodeRef(2, 1),
        NodeRef(4, 1),
        NodeRef(5, 1),
    }


def test_draws_follow_the_round_trips_and_leave_nobody_out() -> None:
    chosen, _, reputations, clock = choice([listed(number) for number in range(1, 5)])
    for number, rtt in ((2, 10.0), (3, 500.0)):
        for _ in range(2):
            reputations.latencies.add(NodeRef(number, 1), TARGET, rtt, clock.mono(), 0.0)
    for number in (2, 3, 4):
        reputations.credit(NodeRef(number, 1), "success", SEEN)
    drawn = Counter(chosen.draw(TARGET) for _ in range(3000))
    # 1/60 and 1/550, the unknown one has their median; 15 % are spread evenly (wire §3.2).
    fast, slow = 1 / 60, 1 / 550
    middle = (fast + slow) / 2
    for number, weight in ((2, fast), (3, slow), (4, middle)):
        wanted = 0.05 + 0.85 * weight / (fast + slow + middle)
        assert drawn[NodeRef(number, 1)] / 3000 == pytest.approx(wanted, abs=0.04)
    shares = chosen.shares()
    assert sum(shares.values()) == pytest.approx(1)
    assert set(shares) == {NodeRef(2, 1), NodeRef(3, 1), NodeRef(4, 1)}
    assert shares[NodeRef(2, 1)] > shares[NodeRef(4, 1)] > shares[NodeRef(3, 1)] >= 0.05


def test_nobody_listed() -> None:
    chosen, _, _, _ = choice([])
    assert chosen.shares() == {}
