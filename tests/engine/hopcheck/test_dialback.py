from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.hopcheck import dialback
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.directory.signing_key import SigningKey
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.hopcheck.dialback import DialbackDesk, Outlook
from relaydesk.engine.relay.outbound.outbound import Outbound
from tests.support.clock import FakeClock
from tests.support.edge_rig import CheckedNode, checked_node, edge, without
from tests.support.lab_network import ListedNodes

KEY = SigningKey("node", bytes([3] * 32))
REF = NodeRef(7, 0)


class _Identity:
    """Who asks."""

    ref = REF
    signing_addr = KEY.address
    sign = staticmethod(KEY.sign)


def listed(url: str) -> ListedNodes:
    return ListedNodes({REF: Listed(REF, "owner", KEY.address, url)})


def desk(node: CheckedNode, directory: ListedNodes, clock: FakeClock, *, on: bool = True) -> DialbackDesk:
    parts = node.service.parts
    assert parts is not None
    return DialbackDesk(directory, parts.identity, parts.outbound, clock, lambda: on)


def question(node: CheckedNode, clock: FakeClock, **changes: Any) -> bytes:
    parts = node.service.parts
    assert parts is not None
    given: dict[str, Any] = {"to": parts.identity.signing_addr, "at_s": clock.wall_ms() // 1000} | changes
    return dialback.ask(given.pop("ref", REF), KEY.address, KEY.sign, **given)


async def refused(made: DialbackDesk, data: bytes) -> str:
    with pytest.raises(WireError) as caught:
        await made.answer(data)
    return caught.value.code


async def test_it_looks_where_its_own_directory_says_and_tells_what_it_saw(tmp_path: Path) -> None:
    clock = FakeClock()
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        made = desk(node, listed(front.url), clock)
        told = json.loads(await made.answer(question(node, clock)))
        assert told["status"] == 400
        assert ["x-zs-relay-hop", "1"] in [[name.lower(), value] for name, value in told["headers"]]
        # One request, and always the same one.
        (asked,) = front.asked
        assert asked.startswith(b"POST /v1/zs/relay HTTP/1.1\r\n")
        assert b"x-zs-relay-target: check" in asked.lower()


async def test_once_a_minute_for_one_asker(tmp_path: Path) -> None:
    clock = FakeClock()
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        made = desk(node, listed(front.url), clock)
        await made.answer(question(node, clock))
        clock.advance(59)
        assert await refused(made, question(node, clock)) == "relay_busy"
        clock.advance(1)
        await made.answer(question(node, clock))
        assert len(front.asked) == 2


async def test_nothing_else_can_be_asked(tmp_path: Path) -> None:
    clock = FakeClock()
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        made = desk(node, listed(front.url), clock)
        assert await refused(made, question(node, clock, ref=NodeRef(8, 0))) == "bad_request"
        assert await refused(made, question(node, clock, to=KEY.address)) == "bad_request"
        assert await refused(made, question(node, clock, at_s=1)) == "bad_request"
        assert await refused(made, b"{}") == "bad_request"
        other = SigningKey("node", bytes([4] * 32))
        parts = node.service.parts
        assert parts is not None
        forged = dialback.ask(
            REF, other.address, other.sign, parts.identity.signing_addr, clock.wall_ms() // 1000
        )
        assert await refused(made, forged) == "bad_request"
        assert front.asked == []
        assert (
            await refused(desk(node, listed(front.url), clock, on=False), question(node, clock))
            == "not_found"
        )


async def test_nobody_there_is_told_by_its_kind(tmp_path: Path) -> None:
    clock = FakeClock()
    async with checked_node(tmp_path) as node:
        told = json.loads(await desk(node, listed("http://127.0.0.1:1"), clock).answer(question(node, clock)))
        assert (told["status"], told["kind"]) == (0, "refused")


async def test_both_ends_over_the_network_listener(tmp_path: Path) -> None:
    """The asker's own edge takes the marker away: only the peer sees it."""
    for name in ("peer", "asker"):
        (tmp_path / name).mkdir()
    async with (
        checked_node(tmp_path / "peer", dialback="on") as peer,
        checked_node(tmp_path / "asker") as asker,
        edge(asker.port, rewrite=without("X-Zs-Relay-Hop")) as front,
    ):
        mine, theirs = asker.service.parts, peer.service.parts
        assert mine is not None
        assert theirs is not None
        ref = mine.identity.ref
        known = Listed(ref, mine.identity.owner_addr, mine.identity.signing_addr, front.url)
        theirs.book.find = lambda each: known if each == ref else None  # type: ignore[method-assign]
        there = Listed(
            theirs.identity.ref, theirs.identity.owner_addr, theirs.identity.signing_addr, peer.url
        )
        outbound: Outbound = mine.outbound
        look = Outlook(mine.identity, outbound, asker.service.ground.clock, (there,), front.url).look
        seen = await look()
        assert seen is not None
        assert (seen.status, seen.values("X-Zs-Relay-Hop")) == (400, ())
        # Once a minute: the second question is not answered.
        assert await look() is None


async def test_a_peer_that_does_not_look_is_passed_over(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node:
        parts = node.service.parts
        assert parts is not None
        there = Listed(parts.identity.ref, "o", parts.identity.signing_addr, node.url)
        gone = Listed(REF, "p", KEY.address, "http://127.0.0.1:1")
        outlook = Outlook(parts.identity, parts.outbound, node.service.ground.clock, (gone, there), node.url)
        assert await outlook.look() is None
