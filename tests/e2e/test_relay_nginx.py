"""nginx in front of a relay: whom callers charge for what it does, and how a relay comes back (wire §2).

Four operators as processes. Before one of them, used as a relay, and before another, used as a target, there
is nginx, which is set wrong in the ways that people's proxies are.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from relaydesk.core.relay.blame import RULES
from relaydesk.core.relay.directory.source import parse_source
from relaydesk.core.view.network import HopView, RelayView
from relaydesk.engine.relay.asking.answered import Answered, NotReachedError
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.asker import Asker
from tests.support.front import NGINX, Front
from tests.support.lab_ground import network_service, network_settings
from tests.support.operators import Operator, Operators, Plan
from tests.support.pebble import free_ports

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx")

RELAY, TARGET = "/v1/zs/relay", "/v1/zs/reserve"


@dataclass
class Lab:
    """``asking`` probes only when it is told to, ``watching`` every second. ``relay`` and ``target`` are
    behind nginx."""

    operators: Operators
    front: Front
    asking: Operator
    relay: Operator
    target: Operator
    watching: Operator

    def wrong(self, way: str) -> None:
        """Set nginx in front of the relay wrong."""
        self.front.wrong(self.relay.public_url, way)

    def right(self) -> None:
        """Set nginx right, before both."""
        self.front.right(self.relay.public_url)
        self.front.right(self.target.public_url)


@pytest.fixture(scope="module")
def running() -> Iterator[Lab]:
    front = Front()
    binds = [f"127.0.0.1:{port}" for port in free_ports(2)]
    relay, target = (
        Plan({"PROBE_INTERVAL": "1h"}, bind=bind, url=front.behind(bind, place))
        for bind, place in zip(binds, (RELAY, TARGET), strict=True)
    )
    asking, watching = Plan({"PROBE_INTERVAL": "1h"}), Plan({"PROBE_INTERVAL": "1s"})
    with front, Operators(asking, relay, target, watching) as operators:
        yield Lab(operators, front, *operators)


@pytest.fixture
def lab(running: Lab) -> Iterator[Lab]:
    yield running
    running.right()


@asynccontextmanager
async def caller(lab: Lab, folder: Path, *, probes: bool = True) -> AsyncIterator[Asker]:
    """A caller that no directory lists, in this process, with a book on relays that is empty but for one
    probe of each."""
    source = lab.operators.source
    async with network_service(folder, network_settings(directories=(source,))) as service:
        parts = service.parts
        assert parts is not None
        assert await parts.sources.refresh(parse_source(source))
        if probes:
            await parts.asker.probe_all()
        yield parts.asker


def reserve(lab: Lab) -> Ask:
    """Bytes that only the target could make sense of; this one cannot, and says so with a code."""
    return Ask(
        target=lab.target.node_ref,
        path=TARGET,
        purpose="reserve",
        body=b'{"ciphertext":"AA=="}',
        content_type="application/vnd.zs-reserve+json",
        accept="application/vnd.zs-reserve-response+json",
    )


async def once(lab: Lab, asker: Asker) -> Answered:
    """Ask once, through the relay behind nginx."""
    others = [node.node_ref for node in lab.operators if node is not lab.relay]
    answered = await asker.send_once(reserve(lab), tried=others)
    await answered.aclose()
    return answered


def view(asker: Asker, node: Operator) -> RelayView:
    (found,) = [each for each in asker.relays_view().relays if each.ref == node.ref]
    return found


def told(hop: HopView) -> tuple[int, str, bool, str, str, str]:
    """What a hop's record says; that it says why in words, too."""
    assert RULES[hop.rule] in hop.why
    return hop.status, str(hop.code), hop.marker, hop.attribution, hop.charged, hop.rule


DOOR = (False, "relay", "relay", "unmarked_front_door")
NOBODY = (False, "unknown", "nobody", "unattributed")

# What nginx does, and what a caller makes of it: status, code, marker, who failed, who is charged, the rule.
ASKED = {
    "page-502": (502, "", *DOOR),
    "page-503": (503, "", *DOOR),
    "page-429": (429, "", *DOOR),
    "page-504": (504, "", *NOBODY),
    "empty-502": (502, "", *DOOR),
    "empty-503": (503, "", *DOOR),
    "empty-429": (429, "", *DOOR),
    "empty-504": (504, "", *NOBODY),
    "dead": (502, "", *DOOR),
    "slow": (504, "", *NOBODY),
}


@pytest.mark.parametrize("way", [None, "strip"])
async def test_the_targets_own_answer_charges_nobody(lab: Lab, tmp_path: Path, way: str | None) -> None:
    """With the marker or without: an answer that has a code of its own is the target's (§2.3, 3)."""
    async with caller(lab, tmp_path) as asker:
        if way:
            lab.wrong(way)
        async with await asker.send(reserve(lab), first=lab.relay.node_ref) as answered:
            assert answered.relay == lab.relay.node_ref
            assert answered.code
            assert not answered.code.startswith("relay_")
        (hop,) = answered.hops
        assert told(hop) == (answered.status, answered.code, way is None, "none", "nobody", "own_code")
        assert asker.hops_view().hops[0] == hop
        relay = view(asker, lab.relay)
        assert (relay.faults, relay.tier) == (0, "reachable")


LATER = ("page-503", "empty-429", "empty-502", "empty-503", "empty-504", "slow")


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.long if way in LATER else ()) for way in ASKED]
)
async def test_what_nginx_answers_itself_is_charged_as_the_wire_says(
    lab: Lab, tmp_path: Path, way: str
) -> None:
    """And another relay is asked, through which the target's own answer comes."""
    async with caller(lab, tmp_path) as asker:
        lab.wrong(way)
        async with await asker.send(reserve(lab), first=lab.relay.node_ref) as answered:
            assert answered.code
        first, second = answered.hops
        assert first.relay == lab.relay.ref
        assert told(first) == ASKED[way]
        assert first.retryable
        assert second.relay in (lab.asking.ref, lab.watching.ref)
        assert told(second)[2:] == (True, "none", "nobody", "own_code")
        relay = view(asker, lab.relay)
        charged = first.charged == "relay"
        assert relay.faults == charged
        assert [(e.status, e.rule, e.marker) for e in relay.evidence] == [
            (first.status, RULES[first.rule], False) for _ in range(charged)
        ]
        assert relay.tier == "reachable"


async def test_a_code_of_nginx_is_an_answer_where_it_costs_and_none_in_a_probe(
    lab: Lab, tmp_path: Path
) -> None:
    """The one exception for discovery probes (§2.4, end): the marker comes before the code, to choose
    another relay and no more."""
    async with caller(lab, tmp_path) as asker:
        lab.wrong("coded-429")
        async with await asker.send(reserve(lab), first=lab.relay.node_ref) as answered:
            assert (answered.status, answered.code) == (429, "rate_limited")
        assert [told(hop) for hop in answered.hops] == [
            (429, "rate_limited", False, "none", "nobody", "own_code")
        ]
        hops = await asker.probe_all(lab.relay.node_ref)
        through = next(at for at, hop in enumerate(hops) if hop.relay == lab.relay.ref)
        assert told(hops[through]) == (
            429,
            "rate_limited",
            False,
            "relay",
            "nobody",
            "probe_unmarked_front_door",
        )
        assert told(hops[through + 1]) == (200, "", True, "none", "nobody", "final")
        assert view(asker, lab.relay).faults == 0


async def test_a_front_that_claims_the_marker_is_found_out(lab: Lab, tmp_path: Path) -> None:
    """A marked failure is the relay's word that the target failed, and another's success refutes it."""
    async with caller(lab, tmp_path) as asker:
        lab.wrong("marked-502")
        async with await asker.send(reserve(lab), first=lab.relay.node_ref) as answered:
            assert answered.code
        assert told(answered.hops[0]) == (502, "", True, "target", "relay", "claim_refuted")
        assert view(asker, lab.relay).faults == 1


async def test_a_relay_that_was_never_probed_is_not_charged_for_the_marker(lab: Lab, tmp_path: Path) -> None:
    """Nobody knows yet that it would set it (§2.2)."""
    async with caller(lab, tmp_path, probes=False) as asker:
        lab.wrong("page-502")
        answered = await once(lab, asker)
        assert told(answered.hops[0]) == (502, "", False, "unknown", "nobody", "unattributed")
        assert view(asker, lab.relay).faults == 0


@pytest.mark.long
@pytest.mark.parametrize("way", [None, "strip", "pages"])
async def test_a_targets_failure_is_the_relays_where_its_front_takes_the_marker_away(
    lab: Lab, tmp_path: Path, way: str | None
) -> None:
    """The same page of the target's own front, through three relays: what the marker is for. A front that
    puts pages of its own in the place of errors takes it away as well."""
    async with caller(lab, tmp_path) as asker:
        lab.front.wrong(lab.target.public_url, "page-502")
        if way:
            lab.wrong(way)
        with pytest.raises(NotReachedError) as caught:
            await asker.send(reserve(lab), first=lab.relay.node_ref)
        mine, *others = caught.value.hops
        assert len(others) == 2
        assert caught.value.target_down
        claim = (502, "", True, "target", "target", "marked")
        assert told(mine) == ((502, "", *DOOR) if way else claim)
        assert {told(hop) for hop in others} == {claim}
        faults = [view(asker, node).faults for node in (lab.relay, lab.asking, lab.watching)]
        assert faults == [1 if way else 0, 0, 0]


async def test_a_claim_that_has_a_code_is_one_without_the_marker_too(lab: Lab, tmp_path: Path) -> None:
    async with caller(lab, tmp_path) as asker:
        lab.front.wrong(lab.target.public_url, "drop")
        lab.wrong("strip")
        answered = await once(lab, asker)
        code = "relay_upstream_unreachable"
        assert told(answered.hops[0]) == (502, code, False, "target", "nobody", "target_unreachable")
        assert view(asker, lab.relay).faults == 0


async def test_three_faults_demote_a_relay_and_one_probe_brings_it_back(lab: Lab, tmp_path: Path) -> None:
    async with caller(lab, tmp_path) as asker:
        lab.front.wrong(lab.target.public_url, "page-503")
        lab.wrong("strip")
        for number in (1, 2, 3):
            assert view(asker, lab.relay).tier == "reachable"
            answered = await once(lab, asker)
            assert told(answered.hops[0]) == (503, "", *DOOR)
            assert view(asker, lab.relay).faults == number
        relay = view(asker, lab.relay)
        assert relay.tier == "demoted"
        times = re.findall(r"\d\d:\d\d:\d\d", relay.explanation)
        assert relay.explanation == (
            f"Demoted since {times[0]} until {times[1]} UTC: 3 failures in a row, the last for "
            f"{lab.target.ref} (503 without a code, unmarked; {RULES['unmarked_front_door']})."
        )
        drawn = {asker.choice.draw(lab.target.node_ref) for _ in range(50)}
        assert drawn == {lab.asking.node_ref, lab.watching.node_ref}
        lab.right()
        await asker.probe_all()
        assert view(asker, lab.relay).tier == "reachable"
        assert view(asker, lab.relay).faults == 0
        assert lab.relay.node_ref in {asker.choice.draw(lab.target.node_ref) for _ in range(200)}


PROBED = {
    None: (200, "", True, "none", "nobody", "final"),
    "strip": (200, "", False, "none", "nobody", "final"),
    "page-502": (502, "", False, "relay", "relay", "probe_unmarked_front_door"),
    "page-504": (504, "", *NOBODY),
    "empty-429": (429, "", False, "relay", "relay", "probe_unmarked_front_door"),
    "coded-429": (429, "rate_limited", False, "relay", "nobody", "probe_unmarked_front_door"),
}


@pytest.mark.long
def test_a_nodes_own_probes_say_the_same(lab: Lab) -> None:
    """From outside: a process that is told to probe, and what its console would show."""
    for way, expected in PROBED.items():
        if way is None:
            lab.right()
        else:
            lab.wrong(way)
        hops = lab.asking.probe(lab.relay)
        (through,) = [hop for hop in hops if hop.relay == lab.relay.ref]
        assert told(through) == expected, way
        lab.right()
        (through,) = [hop for hop in lab.asking.probe(lab.relay) if hop.relay == lab.relay.ref]
        assert told(through) == PROBED[None]
        assert lab.asking.relay(lab.relay).faults == 0


@pytest.mark.long
def test_a_demoted_relay_is_back_within_one_probe_interval(lab: Lab) -> None:
    """All of it by background probes, while the others are reachable."""
    node = lab.watching
    # What it saw of the tests before is over.
    lab.operators.wait(lambda: node.relay(lab.relay).faults == 0, "the relay is not in order")
    lab.wrong("page-502")
    lab.operators.wait(lambda: node.relay(lab.relay).tier == "demoted", "the relay is not demoted", 40)
    relay = node.relay(lab.relay)
    assert relay.faults >= relay.fault_limit == 3
    assert str(relay.explanation).startswith("Demoted since ")
    assert RULES["probe_unmarked_front_door"] in str(relay.explanation)
    assert [node.relay(other).tier for other in (lab.asking, lab.target)] == ["reachable", "reachable"]
    lab.right()
    # One round may be under way; the one after it is the first that began with nginx set right.
    rounds = {probed_at(node)}
    while len(rounds) < 3:
        rounds.add(probed_at(node))
        if node.relay(lab.relay).tier == "reachable":
            break
    relay = node.relay(lab.relay)
    assert (relay.tier, relay.faults) == ("reachable", 0)
    (back, *_) = [hop for hop in node.hops() if hop.relay == lab.relay.ref]
    assert (back.purpose, back.marker, back.charged) == ("probe", True, "nobody")


def probed_at(node: Operator) -> int:
    """When its last round of probes ended."""
    found = node.view().relays.value
    assert found is not None
    return found.probed_at_ms
