from __future__ import annotations

from dataclasses import replace

import pytest

from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.core.relay.reputation import Observation
from relaydesk.core.text import SafeText
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.relay.asking import view as module
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.relay.asking.peers import Peers
from relaydesk.engine.relay.asking.reputations import Reputations
from relaydesk.engine.relay.asking.view import RelaysReport, Stranger
from relaydesk.engine.relay.exchange.market import NetworkModel
from tests.support.clock import FakeClock, FakeRng
from tests.support.lab_network import ListedNodes
from tests.support.lab_relay import LabNode

OWN = NodeRef(50, 1)


class Rig:
    """A report over nodes of which nothing is known yet; operator 50 is this node."""

    def __init__(self, *operators: int) -> None:
        self.clock = FakeClock()
        self.nodes = {number: LabNode(number, wall_ms=self.clock.wall_ms) for number in (*operators, 50)}
        refs = {number: NodeRef(number, 1) for number in self.nodes}
        self.directory = ListedNodes(
            {
                refs[number]: Listed(refs[number], each.owner, each.signing, f"https://n{number}.example")
                for number, each in self.nodes.items()
            }
        )
        self.peers = Peers(self.directory, OWN, self.clock)
        self.reputations = Reputations(self.clock, lambda: 360.0)
        self.alerts = AlertBoard(self.clock, Bus())
        self.strangers: list[Stranger] = []
        choice = Choice(self.peers, self.reputations, FakeRng())
        self.report = RelaysReport(
            self.peers,
            choice,
            self.reputations,
            self.alerts,
            lambda: self.directory.find(OWN),
            lambda: self.strangers,
        )

    def standing(self) -> dict[tuple[str, str], str]:
        """Alerts by code and subject."""
        return {(each.code, each.subject): each.message for each in self.alerts.view().alerts}


async def test_targets_with_few_relays_are_alerts_until_there_are_more() -> None:
    rig = Rig(1, 2)
    rig.report.update()
    assert set(rig.standing()) == {("few_relays", "1:1"), ("few_relays", "2:1")}
    assert "through one relay only" in rig.standing()["few_relays", "1:1"]
    third = LabNode(3)
    ref = NodeRef(3, 1)
    rig.directory.listed[ref] = Listed(ref, third.owner, third.signing, "https://n3.example")
    rig.report.update()
    assert rig.standing() == {}
    # Another node of one owner helps nobody.
    rig.directory.listed[ref] = replace(rig.directory.listed[ref], owner=rig.nodes[1].owner)
    del rig.directory.listed[NodeRef(2, 1)]
    rig.report.update()
    assert "no relay reaches node 1:1" in rig.standing()["few_relays", "1:1"]
    assert set(rig.standing()) == {("few_relays", "1:1"), ("few_relays", "3:1")}


async def test_a_node_that_is_not_used_any_more_has_no_alert() -> None:
    rig = Rig(1, 2)
    rig.report.update()
    assert ("few_relays", "2:1") in rig.standing()
    del rig.directory.listed[NodeRef(2, 1)]
    rig.report.listing_changed()
    assert set(rig.standing()) == {("few_relays", "1:1")}
    rig.report.update()
    assert set(rig.standing()) == {("few_relays", "1:1")}


async def test_a_large_network_without_relays_does_not_flood_the_board() -> None:
    rig = Rig(*range(100, 140))
    for ref, each in rig.directory.listed.items():
        rig.directory.listed[ref] = replace(each, owner="one owner")
    rig.report.update()
    assert len(rig.standing()) == module.MOST_ALERTS


async def test_our_version_lagging_is_an_alert() -> None:
    rig = Rig(1, 2, 3)
    rig.nodes[2].proto_version = "9.11"
    for number in (1, 2, 3):
        assert await rig.peers.check(NodeRef(number, 1), rig.nodes[number].details()) == ""
    rig.report.update()
    message = rig.standing()["network_version_lags", ""]
    assert message == "one node speaks version 9.11 of the network's protocol, this one 9.10"
    rig.nodes[2].proto_version = "9.10"
    await rig.peers.check(NodeRef(2, 1), rig.nodes[2].details())
    rig.report.update()
    assert rig.standing() == {}


async def test_one_relay_in_full() -> None:
    rig = Rig(1, 2, 3)
    ref = NodeRef(2, 1)
    rig.nodes[2].models = [{"id": "a"}, {"id": "b"}]
    await rig.peers.check(ref, rig.nodes[2].details())
    for rtt in (20.4, 31.0):
        rig.reputations.latencies.add(ref, NodeRef(1, 1), rtt, rig.clock.mono(), 0.0)
    bad = Observation(rig.clock.wall_ms(), NodeRef(1, 1), 502, "", False, "unmarked_front_door")
    for _ in range(4):
        rig.reputations.credit(ref, "fault", bad)
    rig.report.update()
    view = rig.report.view(5, 6)
    assert (view.probed_at_ms, view.next_probe_at_ms) == (5, 6)
    assert [each.ref for each in view.relays] == ["1:1", "2:1", "3:1", "50:1"]
    found = view.relays[1]
    assert (found.standing, found.tier, found.faults, found.fault_limit) == ("eligible", "demoted", 3, 3)
    assert (found.rtt_ms, found.samples, found.history) == (23.6, 2, (20, 31))
    assert (found.proto_version, found.version, found.models) == ("9.10", "lab", ("a", "b"))
    assert found.demoted_until_ms - found.demoted_at_ms == 600_000
    assert found.eligible_relays == 2
    last = found.evidence[-1]
    assert (last.target, last.status, last.marker) == ("1:1", 502, False)
    assert "hop marker is missing" in last.rule
    assert "502 without a code, unmarked" in found.explanation
    assert view.relays[0].explanation == "In use: nothing speaks against it."
    assert sum(each.share for each in view.relays) > 0.99
    assert view.relays[3].standing == "self"


def test_who_is_not_used_is_shown_with_the_reason() -> None:
    rig = Rig(1)
    away = Listed(NodeRef(4, 1), "o", "s", "https://four.example\x1b[31m", name=SafeText("dan"))
    rig.strangers = [Stranger(away, "blocked", "you blocked operator 4"), Stranger(away, "unknown", "again")]
    found = {each.ref: each for each in rig.report.view(0, 0).relays}
    assert (found["4:1"].standing, found["4:1"].why) == ("blocked", "you blocked operator 4")
    assert "\x1b" not in found["4:1"].base_url
    assert found["4:1"].name == "dan"
    # Counted at once where no round was made yet.
    assert found["1:1"].eligible_relays == 0


def test_offers_of_others_are_shown_up_to_a_number_and_the_rest_is_counted() -> None:
    offered = [
        NetworkModel(f"m{at:04}\x1b[2J", 70_000, 200_000, 8192, 512, 3, warm=True, relays=2)
        for at in range(module.OFFERS_SHOWN + 7)
    ]
    shown, more = module.offers_view(offered)
    assert (len(shown), more) == (module.OFFERS_SHOWN, 7)
    first = shown[0]
    assert "\x1b" not in first.id
    assert (first.input_rate, first.output_rate, first.context_window) == (70_000, 200_000, 8192)
    assert (first.targets, first.eligible_relays, first.warm) == (3, 2, True)
    assert module.offers_view(()) == ((), 0)


async def test_nodes_are_counted_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one the loop would stand still for seconds, where a directory lists thousands."""
    rig = Rig(1, 2, 3)
    monkeypatch.setattr(Choice, "eligible", None)
    rig.report.update()
    assert {
        each.ref: each.eligible_relays for each in rig.report.view(0, 0).relays if each.ref != "50:1"
    } == {
        "1:1": 2,
        "2:1": 2,
        "3:1": 2,
    }
