"""The caller's relayed send against small relays on real sockets (`tests/support/lab_relay.py`)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.asking.answered import NotReachedError
from tests.support.lab_network import LabNetwork
from tests.support.lab_relay import CLOSE, HANG, Canned, coded, html

TARGET = 1


async def test_one_hop_in_full() -> None:
    """The four headers, the inner content type and nothing that names us; the target's answer as it is."""
    async with LabNetwork(2) as lab:
        target, relay = lab.nodes
        async with await lab.asker.send(lab.ask(TARGET)) as answered:
            body = await answered.read(1000)
        assert (answered.status, answered.code) == (503, "provider_unavailable")
        assert b"provider_unavailable" in body
        (asked,) = relay.relayed
        assert asked.method == "POST"
        assert asked.body == b'{"ciphertext":"AA=="}'
        wanted = {
            "x-zs-relay-target": "1",
            "x-zs-relay-target-node": "1",
            "x-zs-relay-path": "/v1/zs/reserve",
            "x-zs-relay-method": "POST",
            "content-type": "application/vnd.zs-reserve+json",
            "accept-encoding": "identity",
            "content-length": "21",
            "host": f"127.0.0.1:{relay.port}",
        }
        assert asked.headers == wanted
        assert target.served[0].path == "/v1/zs/reserve"
        (hop,) = lab.hops
        assert (hop.relay, hop.target, hop.status, hop.code) == ("2:1", "1:1", 503, "provider_unavailable")
        assert (hop.marker, hop.retryable, hop.charged, hop.rule) == (True, False, "nobody", "own_code")
        assert lab.relay(2).tier == "reachable"


# Each row: the answer of the first relay, whether it advertised 9.1 or later, and what must be made of it.
# (answer, marking, retried, rule, attribution, charged to the relay)
_NO_CODE = replace(html(502), body=b"")
ROWS = [
    (coded(400, "relay_bad_target", marker=True), True, True, "relay_refused", "relay", True),
    (coded(400, "relay_bad_path"), False, True, "relay_refused", "relay", True),
    (coded(400, "relay_bad_method"), False, True, "relay_refused", "relay", True),
    (coded(404, "relay_unknown_target", marker=True), True, True, "relay_refused", "relay", True),
    (coded(502, "relay_build_request", marker=True), True, True, "relay_refused", "relay", True),
    (coded(503, "relay_busy", marker=True), True, True, "relay_refused", "relay", True),
    (CLOSE, False, True, "no_answer", "relay", True),
    (CLOSE, True, True, "no_answer", "relay", True),
    (html(502), True, True, "unmarked_front_door", "relay", True),
    (html(503), True, True, "unmarked_front_door", "relay", True),
    (html(429), True, True, "unmarked_front_door", "relay", True),
    (html(500), True, True, "unmarked_front_door", "relay", True),
    (html(522), True, True, "unmarked_front_door", "relay", True),
    (_NO_CODE, True, True, "unmarked_front_door", "relay", True),
    (Canned(502, b'{"error":{"code":"unt', does="cut"), True, True, "unmarked_front_door", "relay", True),
    # A code is one only where the body is whole.
    (replace(coded(503, "relay_busy"), does="cut"), True, True, "unmarked_front_door", "relay", True),
    # A relay below 9.1 is never charged for a marker it did not promise.
    (html(502), False, True, "unattributed", "unknown", False),
    (html(429), False, True, "unattributed", "unknown", False),
    # "Took too long" says nothing of who did.
    (html(504), True, True, "unattributed", "unknown", False),
    (html(408), True, True, "unattributed", "unknown", False),
    (html(524), True, True, "unattributed", "unknown", False),
    # Claims about the target; what becomes of them is told below.
    (coded(502, "relay_upstream_unreachable", marker=True), True, True, "claim_refuted", "target", True),
    (html(502, marker=True), True, True, "claim_refuted", "target", True),
    (html(504, marker=True), False, True, "claim_refuted", "target", True),
    # The target's own answers, and what is nobody's.
    (coded(429, "no_capacity"), True, False, "own_code", "none", False),
    (coded(503, "node_draining", marker=True), True, False, "own_code", "none", False),
    (coded(500, "relay_of_another_age"), True, False, "own_code", "none", False),
    (html(404), True, False, "final", "none", False),
    (html(403, marker=True), True, False, "final", "none", False),
    (html(301), True, False, "final", "none", False),
    (Canned(200, b"{}"), True, False, "final", "none", False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "marking", "retried", "rule", "attribution", "charged"),
    ROWS,
    ids=lambda value: (
        f"{value.status}{value.does}{'m' if value.marker else ''}" if isinstance(value, Canned) else ""
    ),
)
async def test_every_row_end_to_end(
    answer: Canned, marking: bool, retried: bool, rule: str, attribution: str, charged: bool
) -> None:
    async with LabNetwork(3) as lab:
        _, bad, good = lab.nodes
        bad.proto_version = "9.1" if marking else "9.0"
        await lab.asker.probe_all()
        before = len(lab.hops)
        bad.as_relay = [answer]
        async with await lab.asker.send(lab.ask(TARGET), first=NodeRef(2, 1)) as answered:
            pass
        mine = lab.hops[: len(lab.hops) - before][::-1]
        assert [hop.relay for hop in mine] == (["2:1", "3:1"] if retried else ["2:1"])
        first = mine[0]
        assert (first.rule, first.attribution, first.charged) == (
            rule,
            attribution,
            "relay" if charged else "nobody",
        )
        assert first.status == (0 if answer.does == "close" else answer.status)
        assert first.marker == answer.marker
        assert lab.relay(2).faults == (1 if charged else 0)
        assert lab.relay(3).faults == 0
        assert answered.relay == NodeRef(3 if retried else 2, 1)
        assert lab.slept == ([0.5] if retried else [])
        assert len(good.relayed) >= retried


async def test_a_2xx_and_a_coded_answer_are_successes_but_strange_relay_codes_and_pages_are_not() -> None:
    for answer, tier in (
        (Canned(200, b"{}"), "reachable"),
        (coded(402, "ticket_required"), "reachable"),
        (coded(500, "relay_of_another_age"), "cold"),
        (html(404), "cold"),
    ):
        async with LabNetwork(2) as lab:
            lab.nodes[1].always_relay = answer
            async with await lab.asker.send(lab.ask(TARGET)):
                pass
            assert lab.relay(2).tier == tier, answer


async def test_three_attempts_through_three_relays_and_no_more() -> None:
    async with LabNetwork(6) as lab:
        for node in lab.nodes[1:]:
            node.always_relay = coded(503, "relay_busy", marker=True)
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send(lab.ask(TARGET))
        assert caught.value.fault.code == "operators_unreachable"
        assert not caught.value.target_down
        assert len({hop.relay for hop in caught.value.hops}) == 3
        assert [hop.attempt for hop in caught.value.hops] == [1, 2, 3]
        assert sum(len(node.relayed) for node in lab.nodes) == 3
        assert lab.slept == [0.5, 1.5]
        assert lab.nodes[0].served == []


async def test_retry_after_is_waited_for_where_the_budget_allows() -> None:
    async with LabNetwork(4) as lab:
        for node in lab.nodes[1:]:
            node.always_relay = coded(503, "relay_busy", marker=True, retry_after=4)
        with pytest.raises(NotReachedError):
            await lab.asker.send(lab.ask(TARGET))
        assert lab.slept == [4.0, 4.0]
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send(lab.ask(TARGET), budget_s=3.0)
        assert len(caught.value.hops) == 1


async def test_without_a_relay_nothing_is_sent() -> None:
    async with LabNetwork(2) as lab:
        target, sibling = lab.nodes
        lab.only(1)
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send(lab.ask(TARGET))
        assert (caught.value.fault.code, caught.value.hops) == ("no_relay_available", ())
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send_once(lab.ask(TARGET))
        assert caught.value.fault.code == "no_relay_available"
        assert target.served == target.relayed == sibling.relayed == []
        assert lab.hops == ()


async def test_neither_siblings_nor_the_same_owner_relay() -> None:
    async with LabNetwork(3) as lab:
        listed = lab.directory.listed
        own, other = listed[NodeRef(1, 1)], listed[NodeRef(2, 1)]
        listed[NodeRef(2, 1)] = replace(other, owner=own.owner)
        sibling = NodeRef(1, 2)
        listed[sibling] = replace(listed.pop(NodeRef(3, 1)), ref=sibling)
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send(lab.ask(TARGET))
        assert caught.value.fault.code == "no_relay_available"


async def test_a_claim_that_every_relay_makes_charges_none_of_them() -> None:
    async with LabNetwork(4) as lab:
        await lab.nodes[0].stop()
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send(lab.ask(TARGET))
        assert caught.value.target_down
        assert {hop.charged for hop in caught.value.hops} == {"target"}
        assert {hop.code for hop in lab.hops} == {"relay_upstream_unreachable"}
        assert [lab.relay(number).faults for number in (2, 3, 4)] == [0, 0, 0]
        assert lab.asker.peers.is_down(NodeRef(1, 1))
        lab.clock.ahead_s += 31
        assert not lab.asker.peers.is_down(NodeRef(1, 1))


async def test_one_claim_beside_relays_own_failures_does_not_bench_the_target() -> None:
    async with LabNetwork(4) as lab:
        lab.nodes[1].always_relay = html(502, marker=True)
        for node in lab.nodes[2:]:
            node.always_relay = coded(503, "relay_busy", marker=True)
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send(lab.ask(TARGET))
        assert not caught.value.target_down
        assert not lab.asker.peers.is_down(NodeRef(1, 1))
        assert [lab.relay(number).faults for number in (2, 3, 4)] == [0, 1, 1]


async def test_an_answer_through_another_relay_ends_the_targets_rest() -> None:
    async with LabNetwork(3) as lab:
        lab.asker.peers.down(NodeRef(1, 1))
        async with await lab.asker.send(lab.ask(TARGET)):
            pass
        assert not lab.asker.peers.is_down(NodeRef(1, 1))


async def test_a_relay_nobody_reaches_is_demoted_at_once() -> None:
    async with LabNetwork(3) as lab:
        await lab.nodes[1].stop()
        async with await lab.asker.send(lab.ask(TARGET), first=NodeRef(2, 1)) as answered:
            assert answered.relay == NodeRef(3, 1)
        view = lab.relay(2)
        assert (view.tier, view.faults) == ("demoted", 1)
        assert view.demoted_until_ms - view.demoted_at_ms == pytest.approx(120_000, abs=1000)
        assert "could not be reached" in view.explanation
        assert "connection" in lab.hops[1].why


async def test_three_faults_demote_and_a_sentence_says_why() -> None:
    async with LabNetwork(3) as lab:
        lab.nodes[1].always_relay = coded(503, "relay_busy", marker=True)
        for number in range(3):
            assert lab.relay(2).tier == "cold", number
            async with await lab.asker.send(lab.ask(TARGET), first=NodeRef(2, 1)):
                pass
        view = lab.relay(2)
        assert (view.tier, view.faults, view.fault_limit) == ("demoted", 3, 3)
        assert view.explanation.startswith("Demoted since")
        assert "3 failures in a row" in view.explanation
        assert "503 relay_busy, marked" in view.explanation
        assert len(view.evidence) == 3
        assert {each.target for each in view.evidence} == {"1:1"}
        # Not shut out: where there is nobody else, it is asked all the same.
        lab.only(1, 2)
        lab.nodes[1].always_relay = None
        async with await lab.asker.send(lab.ask(TARGET)) as answered:
            assert answered.relay == NodeRef(2, 1)
        assert lab.relay(2).tier == "reachable"


async def test_our_own_cancel_charges_nobody() -> None:
    async with LabNetwork(2, always_relay=HANG) as lab:
        task = asyncio.get_running_loop().create_task(lab.asker.send(lab.ask(TARGET)))
        while not lab.nodes[1].relayed:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (hop,) = lab.hops
        assert (hop.status, hop.rule, hop.charged) == (0, "caller_aborted", "nobody")
        view = lab.relay(2)
        assert (view.faults, view.tier, view.evidence) == (0, "cold", ())


async def test_our_own_deadline_charges_nobody_though_no_answer_came() -> None:
    async with LabNetwork(2, always_relay=HANG) as lab:
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send(lab.ask(TARGET, head_s=0.05))
        (hop,) = caught.value.hops
        assert (hop.status, hop.rule, hop.charged) == (0, "caller_aborted", "nobody")
        assert lab.relay(2).faults == 0
        assert not lab.asker.peers.is_down(NodeRef(1, 1))


async def test_a_fresh_relay_for_every_request() -> None:
    async with LabNetwork(5) as lab:
        for _ in range(40):
            async with await lab.asker.send(lab.ask(TARGET)):
                pass
            # What is known so far must not narrow the draw to whoever was lucky first.
            for number in (2, 3, 4, 5):
                lab.asker.reputations.forget(NodeRef(number, 1))
        used = [len(node.relayed) for node in lab.nodes]
        assert used[0] == 0
        assert sum(used) == 40
        assert sum(1 for count in used if count) >= 3


async def test_a_streamed_answer_comes_piece_by_piece() -> None:
    async with LabNetwork(2) as lab:
        lab.nodes[0].gate = asyncio.Event()
        ask = lab.ask(TARGET, path="/v1/chat/completions", purpose="inference", accept="text/event-stream")
        async with await lab.asker.send_once(ask) as answered:
            assert answered.headers["content-type"] == "text/event-stream"
            pieces = answered.chunks()
            assert (await anext(pieces)).startswith(b"event: zs\ndata: 0")
            lab.nodes[0].gate.set()
            rest = b"".join([piece async for piece in pieces])
        assert rest.endswith(b"data: 2\n\n")
        assert lab.asker.reputations.latencies.history(NodeRef(2, 1)) == ()


async def test_after_payment_only_a_relays_refusal_may_be_repeated() -> None:
    for answer, repeat in (
        (coded(503, "relay_busy", marker=True), True),
        (coded(502, "relay_upstream_unreachable", marker=True), False),
        (html(502), False),
        (html(503, marker=True), False),
        (coded(402, "ticket_invalid"), False),
    ):
        async with LabNetwork(3) as lab:
            lab.nodes[1].always_relay = lab.nodes[2].always_relay = answer
            ask = lab.ask(TARGET, path="/v1/chat/completions", purpose="inference", body=b"paid")
            async with await lab.asker.send_once(ask) as answered:
                assert answered.may_repeat is repeat, answer
                assert answered.status == answer.status
                assert await answered.read(1000) == answer.body
            if repeat:
                async with await lab.asker.send_once(ask, tried=[answered.relay]) as again:
                    assert again.relay != answered.relay
            assert [each.body for node in lab.nodes for each in node.relayed] == [b"paid"] * (1 + repeat)
            assert not lab.asker.peers.is_down(NodeRef(1, 1))


async def test_what_was_paid_for_never_goes_out_twice() -> None:
    """Also not where a connection that rested turns out to be closed."""
    async with LabNetwork(2) as lab:
        relay = lab.nodes[1]
        relay.as_relay = [coded(429, "no_capacity")]
        async with await lab.asker.send(lab.ask(TARGET)) as answered:
            await answered.read(1000)
        assert lab.outbound.resting == 1
        relay.always_relay = CLOSE
        with pytest.raises(NotReachedError) as caught:
            await lab.asker.send_once(lab.ask(TARGET, body=b"paid"))
        assert caught.value.fault.code == "operators_unreachable"
        assert [seen.body for seen in relay.relayed].count(b"paid") == 1
        assert lab.hops[0].charged == "relay"


async def test_round_trips_count_unless_the_loop_stood_still() -> None:
    async with LabNetwork(2) as lab:
        for _ in range(2):
            async with await lab.asker.send(lab.ask(TARGET)):
                pass
        view = lab.relay(2)
        assert view.rtt_ms is not None
        assert view.rtt_ms > 0
        assert view.samples == len(view.history) == 2
        lab.stalls.ms = 80.0
        async with await lab.asker.send(lab.ask(TARGET)):
            pass
        assert lab.relay(2).samples == 2


async def test_a_path_that_no_relay_takes_is_our_own_mistake() -> None:
    async with LabNetwork(2) as lab:
        with pytest.raises(ValueError, match="path"):
            await lab.asker.send(lab.ask(TARGET, path="/v1/zs/relay"))
        assert lab.hops == ()
