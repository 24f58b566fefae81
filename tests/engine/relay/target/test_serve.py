"""How a paid request is answered: by the engine, with its counts, for their price, or with a sealed error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledger_rig import Key
from tests.support.scripted_engine import Script, answer, piece
from tests.support.target_rig import MODEL, TargetRig, chat, refused, reserved
from tests.support.wire import prices
from tests.support.wire.client import MinimalClient, plain_open
from tests.support.wire.exchange import Answer

PRICED = (500_000, 2_000_000)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path) as rig:
        yield rig


async def test_a_whole_answer_with_the_engines_counts(rig: TargetRig) -> None:
    async with rig.client() as client:
        found = await client.exchange(chat())
    assert found.text == "Hello there" and found.reply.status == 200
    assert found.receipt is not None
    assert (found.receipt["actual_input_count"], found.receipt["actual_output_count"]) == (5, 2)
    assert found.receipt["amount_charged"] == 0 and found.receipt["decode_ms"] == 0
    assert found.receipt["ttft_ms"] >= 0
    await rig.rest()


@pytest.mark.parametrize("stream", [False, True])
async def test_responses_are_served_as_well(rig: TargetRig, stream: bool) -> None:
    body = {"model": MODEL, "input": "Hi", "stream": stream}
    async with rig.client() as client:
        found = await client.exchange(body, path="/v1/responses")
    if stream:
        kinds = [one["type"] for one in found.documents]
        assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    else:
        assert found.documents[0]["object"] == "response"
    assert "Hello there" in json.dumps(found.documents)
    await rig.rest()


async def test_a_strangers_request_has_no_cache_and_no_more_than_it_reserved(rig: TargetRig) -> None:
    async with rig.client() as client:
        await client.exchange(chat(max_tokens=500), max_output=7)
        await client.exchange(chat(max_tokens=3), max_output=7)
    bodies = rig.hub.starter.engine(MODEL).bodies
    assert [body["max_tokens"] for body in bodies] == [7, 3]
    assert all(body["cache_prompt"] is False for body in bodies)


async def test_choices_share_the_output_and_one_slot(rig: TargetRig) -> None:
    rig.hub.starter.reply = lambda _: answer("a", delay=0.01)
    async with rig.client() as client:
        found = await client.exchange(chat(n=3), max_output=10)
        assert found.receipt is not None and found.receipt["actual_output_count"] == 3
        few = await client.exchange(chat(n=3), max_output=2)
    engine = rig.hub.starter.engine(MODEL)
    assert engine.most_open == 1 and [body["max_tokens"] for body in engine.bodies] == [3, 3, 3]
    assert few.reply.status == 400 and few.error is not None


async def test_what_was_made_is_charged_and_settles(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, rates=PRICED) as rig, rig.client() as client:
        await rig.credit(1_000_000)
        found = await client.exchange(chat(stream=True), opened=rig.paid())
        assert found.receipt is not None
        # 5 tokens at 0.5 and 2 at 2 USD for a million: 2.5 and 4 microUSDC, each rounded up.
        assert found.receipt["amount_charged"] == 3 + 4
        ticket = await rig.ledger.ticket(found.tx_id)
        assert ticket is not None and ticket.max_price == found.reserved.ticket["max_price"]
        assert ticket.receipt is not None and ticket.receipt.claim.values.amount == 7
        totals = await rig.ledger.totals()
        assert totals.balance + totals.held == 1_000_000


async def test_without_credit_or_our_extension_a_priced_ticket_is_burned(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, rates=PRICED) as rig, rig.client() as client:
        for opened in (plain_open, rig.paid()):
            details, ticket, raw = await reserved(client, chat())
            tx_id, extra = opened(ticket)
            sent = client.sealed_request(details, ticket, raw, tx_id=tx_id, header=extra)
            assert await refused(client, sent) == (402, "payment_verification_failed")
            assert await refused(client, sent) == (402, "ticket_invalid")
            await rig.rest()
        await rig.credit(1_000_000)
        await client.exchange(chat(), opened=rig.paid())
        bob = Key("bob")
        await rig.credit(1_000_000, bob)
        details, ticket, raw = await reserved(client, chat())
        tx_id, extra = rig.paid(bob)(ticket)
        sent = client.sealed_request(details, ticket, raw, tx_id=tx_id, header=extra)
        assert await refused(client, sent) == (402, "payment_verification_failed")


async def test_price_0_ends_settled_without_any_extension(rig: TargetRig) -> None:
    async with rig.client() as client:
        found = await client.exchange(chat())
    assert found.receipt is not None
    row = await rig.ledger._repo.read(lambda books: books.live_tickets())
    assert [ticket.state for ticket in row] == ["open"]
    rig.clock.passed_s = 120 + 600 + 10
    await rig.ledger.due()
    ended = await rig.ledger.ticket(row[0].tx_id)
    assert ended is not None and (ended.state, ended.amount) == ("lapsed", 0)


@pytest.mark.parametrize("stream", [False, True])
async def test_errors_behind_the_payment_are_sealed_and_cost_nothing(tmp_path: Path, stream: bool) -> None:
    async with TargetRig(tmp_path, rates=PRICED) as rig, rig.client() as client:
        await rig.credit(1_000_000)
        long = chat("many words " * 100, stream=stream)
        wrong = chat(stream=stream, temperature=-3)
        broken = chat(stream=stream)
        rig.hub.starter.reply = lambda _: Script(status=503, body=b'{"error":{"message":"no"}}')
        for body, fields, status, code in (
            (chat(stream=stream) | {"model": "other"}, {"model": MODEL}, 400, "model_mismatch"),
            (long, {"input_count": 200}, 400, "input_budget_exceeded"),
            (wrong, {}, 400, "invalid_request"),
            (broken, {}, 503, "provider_overloaded"),
        ):
            found = await exchanged(rig, client, body, fields)
            assert found.error is not None and found.error["code"] == code
            assert found.reply.status == (200 if stream else status)
            assert found.done and found.receipt is not None
            assert found.receipt["amount_charged"] == found.receipt["actual_output_count"] == 0
            await rig.rest()
        totals = await rig.ledger.totals()
        assert totals.balance + totals.held == 1_000_000 and totals.earned == 0


async def exchanged(
    rig: TargetRig, client: MinimalClient, body: dict[str, Any], fields: dict[str, Any]
) -> Answer:
    """An exchange whose reserve says something else than its body."""
    raw, details = json.dumps(body).encode(), await client.details()
    asked = {"model": body["model"], "input_count": prices.input_bound(raw), **fields}
    ticket = await client.reserve(
        details, asked["model"], asked["input_count"], 64, stream=bool(body.get("stream"))
    )
    tx_id, extra = rig.paid()(ticket)
    return await client.receive(
        client.sealed_request(details, ticket, raw, tx_id=tx_id, header=extra), ticket, tx_id
    )


async def test_an_answer_that_breaks_off_costs_nothing(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, rates=PRICED) as rig, rig.client() as client:
        await rig.credit(1_000_000)
        rig.hub.starter.reply = lambda _: Script([piece("Once"), piece(" upon"), OSError("gone")])
        found = await client.exchange(chat(stream=True), opened=rig.paid())
        assert found.text == "Once upon" and found.error is not None
        assert found.receipt is not None and found.receipt["amount_charged"] == 0
        await rig.rest()


async def test_a_body_in_no_language_is_refused_sealed(rig: TargetRig) -> None:
    async with rig.client() as client:
        details = await client.details()
        for raw in (b"", b"[]", b"\xff", b'{"model":1}', b"{" * 50):
            ticket = await client.reserve(details, MODEL, prices.input_bound(raw), 8)
            sent = client.sealed_request(details, ticket, raw, tx_id="X")
            found = await client.receive(sent, ticket, "X")
            assert found.error is not None and found.error["code"] == "model_mismatch"


async def test_a_stranger_waits_so_long_and_no_longer(
    rig: TargetRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaydesk.engine.relay.target.serve.WAIT_S", 0.1)
    held = asyncio.Event()
    rig.hub.starter.reply = lambda _: Script([held, *answer("mine").steps])
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        # The household takes every slot between the reserve and the request.
        mine = [asyncio.create_task(rig.hub.chat()) for _ in range(4)]
        await rig.hub.until(lambda: rig.hub.starter.open == 4)
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        found = await client.receive(sent, ticket, "X")
        assert found.error is not None and found.error["code"] == "provider_overloaded"
        assert found.reply.status == 503
        assert found.receipt is not None and found.receipt["actual_input_count"] == 0
        held.set()
        assert [status for status, _, _ in await asyncio.gather(*mine)] == [200] * 4
    await rig.rest()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("silent", [False, True])
async def test_an_answer_may_take_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool, silent: bool
) -> None:
    monkeypatch.setattr("relaydesk.engine.relay.target.serve.RUN_S", 0.15)
    steps = [asyncio.Event()] if silent else answer(*"words" * 100, delay=0.01).steps
    async with TargetRig(tmp_path, rates=PRICED) as rig, rig.client() as client:
        await rig.credit(1_000_000)
        rig.hub.starter.reply = lambda _: Script(steps)
        found = await client.exchange(chat(stream=stream), opened=rig.paid())
        assert found.error is not None and found.error["code"] == "provider_overloaded"
        assert found.receipt is not None and found.receipt["amount_charged"] == 0
        assert bool(found.text) == (stream and not silent)
        await rig.rest()


async def test_a_model_that_is_offered_no_longer(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat(stream=True))
        await rig.hub.registry.change(MODEL, {"offer": False})
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        found = await client.receive(sent, ticket, "X")
        assert found.error is not None and found.error["code"] == "provider_overloaded"
        assert rig.hub.starter.engine(MODEL).bodies == []
    await rig.rest()


@pytest.mark.parametrize("stream", [False, True])
async def test_whoever_leaves_frees_his_slot(tmp_path: Path, stream: bool) -> None:
    async with TargetRig(tmp_path, rates=PRICED) as rig, rig.client() as client:
        await rig.credit(1_000_000)
        never = asyncio.Event()
        steps = [piece("one", None, prompt_progress={"total": 5, "processed": 5}), piece("two"), never]
        rig.hub.starter.reply = lambda _: Script(steps)
        details, ticket, raw = await reserved(client, chat(stream=stream))
        tx_id, extra = rig.paid()(ticket)
        sent = client.sealed_request(details, ticket, raw, tx_id=tx_id, header=extra)

        seen = asyncio.Event()
        client.on_event = lambda found, _: seen.set() if found.text == "onetwo" else None
        task = asyncio.create_task(client.receive(sent, ticket, tx_id))
        await rig.hub.until(lambda: rig.hub.starter.open == 1)
        if stream:
            await asyncio.wait_for(seen.wait(), 3)
        task.cancel()
        await asyncio.wait([task])
        await rig.rest()
        booked = await rig.ledger.ticket(tx_id)
        assert booked is not None and booked.receipt is not None
        # A stream costs what was made of it, an answer that was to come whole nothing.
        assert booked.receipt.claim.values.output_count == (2 if stream else 0)
        assert booked.receipt.claim.values.amount == (3 + 4 if stream else 0)
