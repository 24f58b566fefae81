from __future__ import annotations

from dataclasses import replace

from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.relay.asking import peers as module
from relaydesk.engine.relay.asking.peers import Peers
from tests.support.clock import FakeClock
from tests.support.lab_network import ListedNodes
from tests.support.lab_relay import LabNode

NOW_MS = 1_700_000_000_000
REF = NodeRef(7, 3)


def node(**fields: object) -> LabNode:
    return LabNode(7, 3, **fields)


def listed(of: LabNode) -> Listed:
    return Listed(NodeRef(of.operator, of.node), of.owner, of.signing, "https://seven.example")


def known(*nodes: LabNode, own: NodeRef | None = None) -> tuple[Peers, ListedNodes, FakeClock]:
    clock = FakeClock(NOW_MS)
    directory = ListedNodes({each.ref: each for each in map(listed, nodes)})
    return Peers(directory, own, clock), directory, clock


async def test_what_is_learnt_of_a_peer() -> None:
    one = node(proto_version="9.12")
    peers, _, clock = known(one)
    assert (peers.version(REF), peers.marks_hops(REF), peers.newest_version()) == ("9.0", False, "")
    assert await peers.check(REF, one.details()) == ""
    assert (peers.version(REF), peers.marks_hops(REF), peers.newest_version()) == ("9.12", True, "9.12")
    assert [each.listed.ref for each in peers.newer_than_ours()] == [REF]
    # What is refused later leaves what was known.
    clock.advance(5)
    assert "JSON" in await peers.check(REF, b"<html>")
    peer = peers.get(REF)
    assert peer is not None
    assert (peer.version, peer.probed_at_ms) == ("9.12", NOW_MS + 5000)
    assert "JSON" in peer.problem
    assert await peers.check(NodeRef(9, 9), b"{}") != ""


async def test_versions_are_compared_as_numbers() -> None:
    nodes = [
        LabNode(7, 3, proto_version="9.9"),
        LabNode(8, proto_version="9.10"),
        LabNode(9, proto_version="x"),
    ]
    peers, _, _ = known(*nodes)
    for each in nodes:
        assert await peers.check(NodeRef(each.operator, each.node), each.details()) == ""
    assert peers.newest_version() == "9.10"
    assert peers.newer_than_ours() == []
    assert not peers.marks_hops(NodeRef(9, 1))


async def test_another_key_is_another_node_and_who_is_listed_no_more_is_gone() -> None:
    one = node()
    peers, directory, _ = known(one, LabNode(8))
    await peers.check(REF, one.details())
    directory.listed[REF] = replace(listed(one), base_url="https://moved.example")
    assert peers.version(REF) == "9.10"
    moved = peers.get(REF)
    assert moved is not None
    assert moved.listed.base_url == "https://moved.example"
    directory.listed[REF] = replace(listed(one), signing=LabNode(9).signing)
    fresh = peers.get(REF)
    assert fresh is not None
    assert (fresh.version, fresh.probed) == ("9.0", False)
    del directory.listed[REF]
    assert peers.get(REF) is None
    assert [each.listed.ref for each in peers] == [NodeRef(8, 1)]
    assert peers.version(REF) == "9.0"


def test_this_node_is_no_peer() -> None:
    peers, _, _ = known(node(), LabNode(8), own=REF)
    assert peers.get(REF) is None
    assert [each.listed.ref for each in peers] == [NodeRef(8, 1)]


def test_a_target_that_is_down_rests_longer_each_time_until_it_answers() -> None:
    peers, _, clock = known(node())
    lengths = []
    for _ in range(7):
        peers.down(REF)
        began = clock.mono()
        while peers.is_down(REF):
            clock.advance(15)
        lengths.append(clock.mono() - began)
    assert lengths == [30, 60, 120, 240, 480, 600, 600]
    peers.reached(REF)
    peers.down(REF)
    clock.advance(module.FIRST_BACKOFF_S)
    assert not peers.is_down(REF)
