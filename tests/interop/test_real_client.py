"""The real asking side and the real relay with a target that was written from the wire alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.relay.ref import Listed, NodeRef
from tests.support.exchange_rig import ExchangeRig, text_of
from tests.support.hop_rig import HopRig
from tests.support.lab_relay import address
from tests.support.wire.lies import put, swap
from tests.support.wire.target import MinimalTarget

RELAY = NodeRef(201, 1)


@asynccontextmanager
async def network(folder: Path) -> AsyncIterator[tuple[ExchangeRig, HopRig, MinimalTarget]]:
    """One minimal target, one real relay, and the real asking side."""
    async with HopRig() as relay, ExchangeRig(folder, relays=0) as rig:
        target = rig.targets[0]
        relay.directory.listed.append(Listed(rig.ref(target), target.owner, target.signing, target.base_url))
        key = address(b"relay" + bytes(27))
        rig.enlist(RELAY, key, key, relay.url)
        await rig.probe()
        yield rig, relay, target


async def test_streamed_and_whole_answers(tmp_path: Path) -> None:
    async with network(tmp_path) as (rig, relay, target):
        assert text_of(await rig.stream()) == target.words.text
        answer = await rig.whole()
        assert answer["choices"][0]["message"]["content"] == target.words.text
        assert [(paid.relay, paid.receipt_ok) for paid in rig.paid] == [(RELAY, True)] * 2
        # Two reserves, two inferences, and the probe before them.
        assert relay.forwarder.ended["answered"] == 5
        assert {hop.marker for hop in rig.asker.hops_view().hops} == {True}
        assert {ticket.state for ticket in await rig.tickets()} == {"waiting"}


async def test_many_at_once(tmp_path: Path) -> None:
    async with network(tmp_path) as (rig, _, target):
        answers = await asyncio.gather(*(rig.stream(rig.body(f"question {n}")) for n in range(16)))
        assert [text_of(chunks) for chunks in answers] == [target.words.text] * 16
        assert [paid.receipt_ok for paid in rig.paid] == [True] * 16


async def test_a_lie_is_found_behind_a_real_relay_too(tmp_path: Path) -> None:
    async with network(tmp_path) as (rig, _, target):
        target.lies.events = swap(1, 2)
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code == "operator_inconsistent_response"
        target.lies.events = None
        target.lies.ticket = put(max_price=1)
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code == "ticket_price_rejected"


async def test_a_draining_relay_is_no_way(tmp_path: Path) -> None:
    async with network(tmp_path) as (rig, relay, target):
        relay.draining = True
        with pytest.raises(FaultError) as caught:
            await rig.stream()
        assert caught.value.fault.code == "operators_unreachable"
        assert target.bodies == []
        assert rig.paid == []
