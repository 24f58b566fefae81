"""The target as a whole: keys that turn, many at once, going down, and what is kept of anybody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.scripted_engine import Script, answer
from tests.support.target_rig import ANN, MODEL, TargetRig, chat, refused, reserved
from tests.support.wire.exchange import Refused

PRICED = (500_000, 2_000_000)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path) as rig:
        yield rig


async def test_a_key_that_was_replaced_still_opens(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        rig.clock.shift_s = 60
        rig.keys._turn(rig.clock.wall_ms() // 1000)
        assert (await client.details())["ephemeral_age_pubkey"] != details["ephemeral_age_pubkey"]
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"


async def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, rates=PRICED, slots=40, ctx=512) as rig, rig.client() as client:
        await rig.credit(100_000_000)
        found = await asyncio.gather(
            *(client.exchange(chat(stream=bool(n % 2)), opened=rig.paid()) for n in range(20))
        )
        assert all(each.text == "Hello there" for each in found)
        totals = await rig.ledger.totals()
        assert totals.balance + totals.held + totals.earned == 100_000_000
        await rig.rest()


async def test_going_down_honours_tickets_and_gives_none(
    rig: TargetRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        _, second, _ = await reserved(client, chat())
        rig.draining = True
        over = asyncio.create_task(rig.target.tickets_over())
        with pytest.raises(Refused) as caught:
            await client.reserve(details, MODEL, 40, 8)
        assert (caught.value.status, caught.value.code) == (503, "node_draining")
        assert (await client.details())["models"] == []
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"
        assert not over.done()
        monkeypatch.setattr("relaydesk.engine.relay.target.desk.DRAIN_GRACE_S", 0.0)
        await asyncio.wait_for(over, 3)
        late = client.sealed_request(details, second, raw, tx_id="X")
        assert await refused(client, late) == (503, "node_draining")


async def test_going_down_waits_for_who_is_being_served(
    rig: TargetRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaydesk.engine.relay.target.desk.DRAIN_GRACE_S", 0.0)
    held = asyncio.Event()
    rig.hub.starter.reply = lambda _: Script([held, *answer("yours").steps])
    async with rig.client() as client:
        running = asyncio.create_task(client.exchange(chat()))
        await rig.hub.until(lambda: rig.hub.starter.open == 1)
        rig.draining = True
        over = asyncio.create_task(rig.target.tickets_over())
        await asyncio.sleep(0.1)
        assert not over.done()
        held.set()
        assert (await running).text == "yours"
        await asyncio.wait_for(over, 3)


async def test_going_down_waits_for_no_ticket_that_was_not_given(rig: TargetRig) -> None:
    rig.draining = True
    await asyncio.wait_for(rig.target.tickets_over(), 1)


async def test_neither_words_nor_payer_are_in_logs_and_records(
    rig: TargetRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    rig.hub.starter.reply = lambda _: answer("a heron answers")
    async with rig.client() as client:
        await client.exchange(chat("the heron asks", stream=True))
        await client.exchange(chat("the heron asks", temperature=-1))
    said = caplog.text + repr(rig.hub.journal.view()) + repr(rig.hub.events)
    kept = b"".join(path.read_bytes() for path in (rig.hub.dir / "audit").glob("*"))
    assert "model=tiny key=network" in said and b"network" in kept
    for word in ("heron", ANN.address):
        assert word not in said and word.encode() not in kept
