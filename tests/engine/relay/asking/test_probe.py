"""Background probes over small relays on real sockets."""

from __future__ import annotations

import asyncio

import pytest

from relaydesk.core.events import NetworkChanged, RelaysChanged
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.asking import probe as module
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.tasks import cancel_and_wait, spawn
from tests.support.lab_network import LabNetwork
from tests.support.lab_relay import CLOSE, Canned, LabNode, coded, html


async def test_every_node_is_asked_for_and_asked_through_and_never_directly() -> None:
    async with LabNetwork(4, models=[{"id": "m"}]) as lab:
        hops = await lab.asker.probe_all()
        assert {hop.target for hop in hops} == {hop.relay for hop in hops} == {"1:1", "2:1", "3:1", "4:1"}
        assert all(hop.relay != hop.target and hop.purpose == "probe" and hop.status == 200 for hop in hops)
        # Whatever a node served came from a relay: what a relay forwarded is all that was served.
        assert (
            sum(len(node.served) for node in lab.nodes)
            == sum(len(node.relayed) for node in lab.nodes)
            == len(hops)
        )
        for number in (1, 2, 3, 4):
            view = lab.relay(number)
            assert (view.tier, view.proto_version, view.models) == ("reachable", "9.10", ("m",))
            assert view.probed_at_ms > 0
        assert lab.asker.relays_view().probed_at_ms > 0
        assert lab.asker.newest_version() == "9.10"


async def test_the_request_that_probes() -> None:
    async with LabNetwork(2) as lab:
        await lab.asker.probe_all(NodeRef(1, 1))
        asked = lab.nodes[1].relayed[0]
        assert (asked.headers["x-zs-relay-path"], asked.headers["x-zs-relay-method"]) == (
            "/v1/zs/details",
            "GET",
        )
        assert (asked.method, asked.body) == ("POST", b"")


async def test_a_relay_that_recovers_is_back_within_one_round_while_others_are_reachable() -> None:
    async with LabNetwork(4) as lab:
        await lab.asker.probe_all()
        lab.nodes[1].always_relay = html(502)
        for _ in range(3):
            async with await lab.asker.send(lab.ask(1), first=NodeRef(2, 1)):
                pass
        assert lab.relay(2).tier == "demoted"
        assert "hop marker is missing" in lab.relay(2).explanation
        # It is passed over by every draw, and judged all the same.
        await lab.asker.probe_all()
        assert lab.relay(2).tier == "demoted"
        lab.nodes[1].always_relay = None
        await lab.asker.probe_all()
        view = lab.relay(2)
        assert (view.tier, view.faults) == ("reachable", 0)


async def test_a_relay_below_9_1_is_never_charged_for_a_missing_marker() -> None:
    async with LabNetwork(3) as lab:
        old = lab.nodes[1]
        old.proto_version, old.marks, old.always_relay = "9.0", False, html(502)
        for _ in range(4):
            await lab.asker.probe_all()
        assert lab.relay(2).faults == 0
        old.proto_version = "9.1"
        await lab.asker.probe_all()
        await lab.asker.probe_all()
        assert lab.relay(2).faults > 0


async def test_only_a_probe_looks_at_the_marker_before_the_code() -> None:
    """A front door's own coded 429, without the marker (wire §2.4)."""
    async with LabNetwork(3) as lab:
        await lab.asker.probe_all()
        lab.nodes[1].as_relay = [coded(429, "too_many_requests")]
        async with await lab.asker.send(lab.ask(1), first=NodeRef(2, 1)) as answered:
            assert (answered.code, lab.hops[0].charged) == ("too_many_requests", "nobody")
        lab.nodes[1].always_relay = coded(429, "too_many_requests")
        hops = await lab.asker.probe_all()
        bad = [hop for hop in hops if hop.relay == "2:1"]
        assert bad
        assert {(hop.rule, hop.charged) for hop in bad} == {("probe_unmarked_front_door", "nobody")}
        # It only asks through another then, and no target is blamed for it.
        assert all(hop.retryable for hop in bad)
        assert lab.relay(2).faults == 0
        assert lab.relay(1).why == ""


async def test_a_claim_that_the_round_refutes_is_the_relays_fault() -> None:
    async with LabNetwork(3) as lab:
        await lab.asker.probe_all()
        lab.nodes[1].always_relay = coded(502, "relay_upstream_unreachable", marker=True)
        hops = await lab.asker.probe_all()
        bad = [hop for hop in hops if hop.relay == "2:1"]
        assert bad
        assert {(hop.charged, hop.rule, hop.attribution) for hop in bad} == {
            ("relay", "claim_refuted", "target")
        }
        assert lab.relay(2).faults == len(bad)
        assert not lab.asker.peers.is_down(NodeRef(1, 1))


async def test_a_target_that_nobody_reaches_charges_no_relay() -> None:
    async with LabNetwork(4) as lab:
        await lab.nodes[0].stop()
        await lab.asker.probe_all(NodeRef(1, 1))
        assert [lab.relay(number).faults for number in (2, 3, 4)] == [0, 0, 0]
        assert lab.asker.peers.is_down(NodeRef(1, 1))
        assert "could not be reached through 3 relays" in lab.relay(1).why
        # As a relay it is unreachable itself, which one failure shows.
        assert lab.relay(1).tier == "demoted"


@pytest.mark.parametrize(
    "answer",
    [
        html(200),
        Canned(200, b"{}"),
        Canned(200, b"", does="cut"),
        Canned(200, LabNode(9).details(), marker=True),
    ],
    ids=["page", "empty", "cut", "another"],
)
async def test_what_is_not_the_targets_own_answer_charges_nobody_and_helps_nobody(answer: Canned) -> None:
    async with LabNetwork(3) as lab:
        lab.nodes[1].always_relay = answer
        await lab.asker.probe_all()
        view = lab.relay(2)
        assert (view.tier, view.faults) == ("cold", 0)
        assert lab.relay(1).why == ""
        assert lab.relay(1).proto_version == "9.10"


async def test_a_node_without_a_fresh_key_has_no_details_and_the_relay_did_well() -> None:
    async with LabNetwork(2) as lab:
        lab.nodes[0].always_target = coded(503, "no_fresh_ephemeral")
        await lab.asker.probe_all(NodeRef(1, 1))
        assert lab.relay(1).why == "it answered 503 no_fresh_ephemeral"
        assert lab.relay(1).proto_version == ""
        assert lab.relay(2).tier == "reachable"


async def test_stale_details_count_against_the_relay_and_are_used() -> None:
    async with LabNetwork(2) as lab:
        lab.nodes[0].issued_ago_s = 1300
        for stale in (1, 2, 3):
            hops = await lab.asker.probe_all(NodeRef(1, 1))
            assert lab.relay(2).stale == stale
        assert [(hop.charged, hop.rule) for hop in hops if hop.target == "1:1"] == [
            ("relay", "stale_ephemeral")
        ]
        assert lab.relay(2).tier == "demoted"
        assert "stale details" in lab.relay(2).explanation
        assert lab.relay(1).proto_version == "9.10"
        lab.nodes[0].issued_ago_s = 10
        await lab.asker.probe_all(NodeRef(1, 1))
        assert (lab.relay(2).tier, lab.relay(2).stale) == ("reachable", 0)


async def test_only_so_many_at_once() -> None:
    async with LabNetwork(module.AT_ONCE + 4) as lab:
        gate = asyncio.Event()
        open_now = most = 0
        real = lab.outbound.send

        async def counted(*args: object, **options: object) -> object:
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            try:
                if not gate.is_set() and open_now == module.AT_ONCE:
                    gate.set()
                await gate.wait()
                return await real(*args, **options)  # type: ignore[arg-type]
            finally:
                open_now -= 1

        lab.outbound.send = counted  # type: ignore[assignment,method-assign]
        await lab.asker.probe_all()
        assert most == module.AT_ONCE


async def test_the_service_probes_newly_listed_nodes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_S", 0.01)
    async with LabNetwork(3) as lab:
        late = lab.directory.listed.pop(NodeRef(3, 1))
        changed = asyncio.Event()
        lab.bus.listen(lambda event: changed.set() if isinstance(event, RelaysChanged) else None)
        (service,) = lab.asker.services()
        task = spawn(service.run(), name="probes")

        async def until_probed(number: int) -> None:
            async with asyncio.timeout(5):
                while lab.asker.peers.version(NodeRef(number, 1)) != "9.10":
                    changed.clear()
                    await changed.wait()

        await until_probed(2)
        while lab.asker.relays_view().next_probe_at_ms < lab.clock.wall_ms():
            await asyncio.sleep(0.005)
        # The next round is within the interval and its jitter.
        ahead = lab.asker.relays_view().next_probe_at_ms - lab.clock.wall_ms()
        assert 90_000 < ahead <= 144_000
        lab.directory.listed[NodeRef(3, 1)] = late
        lab.bus.publish(NetworkChanged())
        await until_probed(3)
        await cancel_and_wait(task)


async def test_a_relay_that_only_closes_is_charged_by_probes_too() -> None:
    async with LabNetwork(3) as lab:
        lab.nodes[1].always_relay = CLOSE
        for _ in range(3):
            await lab.asker.probe_all()
        assert lab.relay(2).tier == "demoted"
        assert lab.relay(1).tier == lab.relay(3).tier == "reachable"


async def test_of_thousands_of_nodes_few_are_looked_at_for_each_relay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with LabNetwork(2) as lab:
        looked: list[NodeRef] = []

        def may_relay(_choice: Choice, _relay: NodeRef, target: NodeRef) -> bool:
            looked.append(target)
            return True

        monkeypatch.setattr(Choice, "may_relay", may_relay)
        (prober,) = lab.asker.services()
        assert isinstance(prober, module.Prober)
        siblings = [NodeRef(9, number) for number in range(1000)]
        strangers = [NodeRef(number, 0) for number in range(100, 1100)]
        assert prober._target_for(NodeRef(9, 0), [*siblings, *strangers]) in strangers
        assert len(looked) == module.MOST_LOOKED and set(looked) <= set(strangers)
        assert prober._target_for(NodeRef(9, 0), siblings) is None
        # One that answers is taken at once.
        assert prober._target_for(NodeRef(1, 1), [NodeRef(2, 1)]) == NodeRef(2, 1)
