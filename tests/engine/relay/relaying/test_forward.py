from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.relaying.circuits import GB, Caps
from relaydesk.engine.relay.relaying.forward import Circuit
from tests.support.hop_rig import HopRig, Target, answer, hop_headers

CLIENT = "192.0.2.7"


def opened(rig: HopRig, ref: NodeRef, **more: str) -> Circuit:
    return rig.forwarder.open(CLIENT, list(hop_headers(ref, **more).items()))


def code(call: Callable[[], object]) -> str:
    with pytest.raises(WireError) as caught:
        call()
    assert caught.value.status != 504
    return caught.value.code


async def test_a_hop_and_its_books() -> None:
    async with HopRig(Target()) as rig:
        ref = rig.targets[0].ref
        async with opened(rig, ref) as circuit:
            assert rig.circuits.open == 1
            reply = await circuit.send(b"12345")
            assert await reply.read(9) == b"fine"
        assert (rig.circuits.open, rig.meter.this_month, dict(rig.forwarder.ended)) == (0, 5, {"answered": 1})


async def test_the_order_in_which_it_refuses() -> None:
    """Draining before anything, then the headers, before a circuit is taken; then whether it is listed."""
    async with HopRig(Target(), caps=Caps(circuits=1)) as rig:
        ref, unknown = rig.targets[0].ref, NodeRef(5, 5)
        rig.draining = True
        assert code(lambda: rig.forwarder.open(CLIENT, [])) == "relay_busy"
        rig.draining = False
        held = opened(rig, ref)
        assert code(lambda: rig.forwarder.open(CLIENT, [])) == "relay_bad_target"
        assert code(lambda: opened(rig, ref, path="/v1/zs/relay")) == "relay_bad_path"
        assert code(lambda: opened(rig, ref, method="PUT")) == "relay_bad_method"
        assert code(lambda: opened(rig, unknown)) == "relay_busy"
        async with held:
            pass
        assert code(lambda: opened(rig, unknown)) == "relay_unknown_target"
        assert rig.circuits.open == 0


async def test_a_target_that_is_not_verified_gets_nothing() -> None:
    async with HopRig(Target()) as rig:
        rig.targets[0].details = {"node_id": 9}
        with pytest.raises(WireError) as caught:
            async with opened(rig, rig.targets[0].ref) as circuit:
                await circuit.send(b"secret")
        assert (caught.value.code, caught.value.status) == ("relay_upstream_unreachable", 502)
        assert rig.targets[0].got == []
        assert (rig.circuits.open, rig.forwarder.ended["relay_upstream_unreachable"]) == (0, 1)


async def test_what_no_request_can_be_made_of() -> None:
    async with HopRig(Target()) as rig:
        ref = rig.targets[0].ref

        async def short() -> AsyncIterator[bytes]:
            yield b"abc"

        with pytest.raises(WireError) as caught:
            async with opened(rig, ref) as circuit:
                await circuit.send(short(), 5)
        assert caught.value.code == "relay_build_request"


async def test_who_leaves_takes_the_target_along() -> None:
    waits = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, *_: object) -> None:
        assert await reader.read() == b""
        waits.set()

    async with HopRig(Target(silent)) as rig:

        async def hop() -> None:
            async with opened(rig, rig.targets[0].ref) as circuit:
                await circuit.send(b"x")

        task = asyncio.create_task(hop())
        async with asyncio.timeout(5):
            while not rig.targets[0].got:
                await asyncio.sleep(0.005)
            task.cancel()
            await waits.wait()
        assert rig.forwarder.ended["broken_off"] == 1


async def test_a_long_stream_counts_while_it_runs() -> None:
    async with HopRig(Target(answer(b"x")), caps=Caps(monthly_gb=1)) as rig:
        ref = rig.targets[0].ref
        async with opened(rig, ref) as circuit:
            circuit.count(GB)
            assert code(lambda: opened(rig, ref)) == "relay_busy"
            circuit.count(7)
        assert rig.meter.this_month == GB + 7
