"""Exchanges in an engine's place: what they cost is set aside first and booked last."""

from __future__ import annotations

import asyncio

import pytest

from relaydesk.core.access.caller import DEFAULT_CALLER
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.errors import Fault, PeerError
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.gateway.network_lease import NetworkEngine, network_lease
from tests.support.scripted_engine import Script, piece
from tests.support.scripted_hub import ScriptedHub
from tests.support.scripted_network import ScriptedNetwork

CHAT = "/v1/chat/completions"


class Desk:
    """An engine for one request of the key ``k``, which may pay 5000 microunits."""

    def __init__(self, hub: ScriptedHub) -> None:
        self.hub, self.network = hub, ScriptedNetwork()
        hub.quotas.limit("k", KeyLimits(credit_per_day=5000))
        self.record: RequestRecord = hub.journal.open(
            "r", model="net/lab/tiny", key="k", route=CHAT, stream=True, choices=1, caller=DEFAULT_CALLER
        )
        self.engine = NetworkEngine(
            self.network, "lab/tiny", b'{"only":["7"]}', hub.quotas.credits, "k", self.record
        )

    @property
    def standing(self) -> tuple[int, int]:
        found = self.hub.quotas.credits.standing("k")
        return found.spent, found.held


@pytest.fixture
def desk(hub: ScriptedHub) -> Desk:
    return Desk(hub)


async def test_the_exchange_is_told_what_it_has_to_know(desk: Desk) -> None:
    async with await desk.engine.stream(CHAT, b"{}") as stream:
        assert desk.standing == (0, 1000)
        assert desk.record.view().paid == 1000, "the most, until it is known"
        async for _ in stream:
            pass
    (request,) = desk.network.requests
    assert (request.model, request.hints, request.credit_left) == ("lab/tiny", b'{"only":["7"]}', 5000)
    assert desk.standing == (300, 0)
    view = desk.record.view()
    assert (view.relays, view.targets, view.paid) == (("5:1",), ("7:2",), 300)


async def test_each_answer_is_a_ticket_of_its_own(desk: Desk) -> None:
    first, second = [await desk.engine.stream(CHAT, b"{}") for _ in range(2)]
    assert desk.standing == (0, 2000)
    assert desk.network.requests[1].credit_left == 5000, "what is set aside may come back"
    async for _ in first:
        pass
    await second.aclose()
    assert desk.standing == (1300, 0), "who breaks off pays what was set aside: nobody saw a receipt"
    assert desk.record.view().targets == ("7:2",)
    assert desk.record.view().paid == 1300


async def test_a_receipt_that_comes_late_still_counts(desk: Desk) -> None:
    desk.network.tells_late = True
    stream = await desk.engine.stream(CHAT, b"{}")
    await stream.aclose()
    desk.record.finish(499, Fault("client_closed", "left"))
    assert desk.standing == (0, 1000)
    desk.network.late[0]()
    assert desk.standing == (300, 0)


async def test_nothing_is_paid_beyond_the_credit(desk: Desk) -> None:
    desk.network.price = 3000
    stream = await desk.engine.stream(CHAT, b"{}")
    with pytest.raises(PeerError) as caught:
        await desk.engine.stream(CHAT, b"{}")
    assert caught.value.fault.code == "concurrency_exceeded"
    assert desk.network.bodies == [{}], "nothing was asked"
    await stream.aclose()
    with pytest.raises(PeerError) as caught:
        await desk.engine.stream(CHAT, b"{}")
    assert caught.value.fault.code == "credit_per_day_exceeded"
    assert desk.standing == (3000, 0)


async def test_faults_have_a_next_step_before_and_in_the_answer(desk: Desk) -> None:
    desk.network.fault = PeerError("no_relay_available", "there is none")
    with pytest.raises(PeerError) as caught:
        await desk.engine.stream(CHAT, b"{}")
    assert (caught.value.fault.hint, caught.value.fault.retry_after) == ("see `relaydesk relays`", 30)
    assert desk.standing == (0, 0)
    desk.network.fault = None
    desk.network.reply = lambda _: Script([PeerError("upstream_unreachable", "cut")])
    async with await desk.engine.stream(CHAT, b"{}") as stream:
        with pytest.raises(PeerError) as caught:
            await anext(stream)
    assert caught.value.fault.hint == "send the request again"


async def test_a_lease_loads_nothing_and_lets_every_choice_go(desk: Desk) -> None:
    held: set[NetworkEngine] = set()
    async with network_lease(desk.engine, "lab/tiny", 3, desk.record, held) as lease:
        assert held == {desk.engine}
        assert desk.record.load_ms == 0
        assert (lease.alias, lease.extensions, lease.fault) == ("lab/tiny", False, None)
        async with lease.slots.slot("k") as one, lease.slots.slot("k") as two, lease.slots.slot("k") as three:
            assert len({one.number, two.number, three.number}) == 3
        fault = Fault("engine_failed", "m")
        assert await lease.why(fault) is fault
    assert not held
    with pytest.raises(PeerError):
        await desk.engine.json("POST", "/v1/embeddings", b"{}")
    assert await desk.engine.health()


async def test_a_node_that_stops_ends_what_runs_with_its_reason(desk: Desk) -> None:
    never = asyncio.Event()
    stopping = Fault("shutting_down", "the hub is stopping", retry_after=5)
    desk.network.reply = lambda _: Script([piece("Hel"), never])
    async with await desk.engine.stream(CHAT, b"{}") as stream:
        await anext(stream)
        asyncio.get_running_loop().call_later(0.01, desk.engine.end, stopping)
        with pytest.raises(PeerError) as caught:
            await anext(stream)
        assert caught.value.fault == stopping
    assert desk.standing == (1000, 0)
    desk.network.reply = lambda _: Script(before=[never])
    with pytest.raises(PeerError) as caught:
        await desk.engine.stream(CHAT, b"{}")
    assert caught.value.fault == stopping


async def test_who_leaves_is_no_reason_of_the_nodes(desk: Desk) -> None:
    desk.network.reply = lambda _: Script([asyncio.Event()])
    stream = await desk.engine.stream(CHAT, b"{}")
    reading = asyncio.ensure_future(stream.__anext__())
    await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await stream.aclose()
