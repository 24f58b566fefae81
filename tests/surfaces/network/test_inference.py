"""A sealed request over real HTTP: how it is answered, and each refusal with what becomes of its ticket."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.surfaces.network import inference
from tests.support.ledger_rig import Key
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.target_rig import ANN, MODEL, TargetRig, chat
from tests.support.wire import codec, prices
from tests.support.wire.client import MinimalClient, plain_open
from tests.support.wire.exchange import Answer, Refused, Reserved, Sent

PRICED = (500_000, 2_000_000)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path) as rig:
        yield rig


async def reserved(client: MinimalClient, body: dict[str, Any], **more: Any) -> tuple[Any, Reserved, bytes]:
    raw, details = json.dumps(body).encode(), await client.details()
    stream = bool(body.get("stream"))
    ticket = await client.reserve(
        details, body["model"], prices.input_bound(raw), more.pop("max_output", 64), stream=stream, **more
    )
    return details, ticket, raw


async def refused(client: MinimalClient, sent: Sent) -> tuple[int, str]:
    reply = await client.resend(sent)
    assert "x-zs-response-key" not in reply.headers
    return reply.status, reply.error.get("code", "")


# --- answers


async def test_a_whole_answer_with_the_engines_counts(rig: TargetRig) -> None:
    async with rig.client() as client:
        found = await client.exchange(chat())
    assert found.text == "Hello there" and found.reply.status == 200
    assert found.receipt is not None
    assert (found.receipt["actual_input_count"], found.receipt["actual_output_count"]) == (5, 2)
    assert found.receipt["amount_charged"] == 0 and found.receipt["decode_ms"] == 0
    assert found.receipt["ttft_ms"] >= 0
    await rig.rest()


async def test_a_stream_is_sealed_chunk_by_chunk(rig: TargetRig) -> None:
    rig.hub.starter.reply = lambda _: answer("Hello", " there", delay=0.03)
    async with rig.client() as client:
        found = await client.exchange(chat(stream=True, stream_options={"include_usage": True}))
    assert found.text == "Hello there" and found.done
    assert found.documents[-1]["usage"]["completion_tokens"] == 2
    assert found.receipt is not None and found.receipt["decode_ms"] >= 20
    assert all("/models/secret" not in json.dumps(one) for one in found.documents)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("keep-alive")]
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


async def test_silence_is_filled_while_the_prompt_is_read(rig: TargetRig) -> None:
    rig.heartbeat_s = 0.02
    rig.hub.starter.reply = lambda _: Script(answer("late").steps, before=[0.2])
    async with rig.client() as client:
        found = await client.exchange(chat(stream=True))
    assert found.comments >= 3 and found.text == "late"


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


# --- money


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


# --- admission: each refusal, and what becomes of the ticket


async def test_what_no_envelope_is(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        envelope = json.loads(sent.body)
        other = codec.new_reply_key()[1]
        frames = (b"zsrq", b"zsrx\x01" + bytes(4), b"zsrq\x02" + bytes(4), b"zsrq\x01\0\1\0\1{}", b"")
        bodies = [
            b"{}", b"nothing", raw, json.dumps({"ciphertext": "?"}).encode(),
            json.dumps(envelope | {"model": MODEL}).encode(), sent.body[:-30] + b'"}',
            json.dumps({"ciphertext": codec.b64(codec.age_seal(other, b"zsrq"))}).encode(),
            *(
                json.dumps({"ciphertext": codec.b64(codec.age_seal(details["ephemeral_age_pubkey"], frame))})
                .encode()
                for frame in frames
            ),
        ]  # fmt: skip
        for body in bodies:
            wrong = Sent(sent.step, sent.method, sent.path, sent.headers, body)
            assert await refused(client, wrong) == (400, "bad_envelope"), body
        # Sealed as it should be, but not called so.
        headers = sent.headers | {"Content-Type": "application/json"}
        unnamed = Sent(sent.step, sent.method, sent.path, headers, sent.body)
        assert await refused(client, unnamed) == (400, "bad_envelope")
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"


async def test_refusals_before_the_ticket_is_spent_leave_it(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())

        def sealed(body: bytes = raw, **header: Any) -> Sent:
            return client.sealed_request(details, ticket, body, tx_id="X", header=header)

        unknown = codec.b64(os.urandom(16))
        for want, sent in (
            ("ticket_required", sealed(ticket_id=None)),
            ("ticket_required", sealed(ticket_id="")),
            ("ticket_invalid", sealed(ticket_id=unknown)),
            ("admission_tag_invalid", sealed(admission_tag=None)),
            ("admission_tag_invalid", sealed(admission_tag=codec.b64(bytes(32)))),
            ("admission_tag_invalid", sealed(algorand_tx_id="Y")),
            ("reply_to_mismatch", sealed(reply_to_public_key=codec.new_reply_key()[1])),
        ):
            assert await refused(client, sent) == (402, want)
        assert await refused(client, sealed(admission_tag=codec.b64(b"short"))) == (400, "bad_envelope")
        # A body that was changed on its way, under the tag of the one that was meant.
        client.alter = lambda what, data: data.replace(b"Hi", b"Ho") if what == "body" else data
        changed = sealed()
        client.alter = lambda _, data: data
        assert await refused(client, changed) == (402, "admission_tag_invalid")
        assert rig.target.tickets.waiting == 1
        sent = sealed()
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"
        # The same envelope once more, and the ticket in another one.
        assert await refused(client, sent) == (402, "ticket_invalid")
        assert await refused(client, sealed()) == (402, "ticket_invalid")


async def test_the_order_is_the_wires(rig: TargetRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a request with several faults the first one in the wire's order is said."""
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        none: dict[str, Any] = {"ticket_id": None}
        unknown: dict[str, Any] = {"ticket_id": codec.b64(os.urandom(16))}
        untagged: dict[str, Any] = {"admission_tag": codec.b64(bytes(32))}
        elsewhere: dict[str, Any] = {"reply_to_public_key": codec.new_reply_key()[1]}

        async def said(header: dict[str, Any]) -> str:
            sent = client.sealed_request(details, ticket, raw, tx_id="X", header=header)
            return (await refused(client, sent))[1]

        assert await said(unknown | untagged | elsewhere) == "ticket_invalid"
        assert await said(untagged | elsewhere) == "admission_tag_invalid"
        rig.clock.shift_s = 121
        assert await said(elsewhere) == "reply_to_mismatch"
        rig.clock.shift_s = 0
        monkeypatch.setattr("relaydesk.engine.relay.target.desk.DRAIN_GRACE_S", 0.0)
        rig.draining = True
        assert await said(none | untagged) == "ticket_required"
        assert await said(unknown | untagged) == "node_draining"


async def test_an_expired_ticket_is_none(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        rig.clock.shift_s = 121
        assert await refused(client, sent) == (402, "ticket_invalid")
        rig.clock.shift_s = 0
        assert await refused(client, sent) == (402, "ticket_invalid")
    assert rig.target.tickets.promised() == 0


async def test_two_of_the_same_at_once_are_served_once(rig: TargetRig) -> None:
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        replies = await asyncio.gather(*(client.resend(sent) for _ in range(6)))
    assert sorted(reply.status for reply in replies) == [200, 402, 402, 402, 402, 402]
    assert len(rig.hub.starter.engine(MODEL).bodies) == 1
    await rig.rest()


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


# --- leaving, waiting, size


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


async def test_who_takes_nothing_is_cut_off(rig: TargetRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "STALL_S", 0.3)
    rig.heartbeat_s = 0.05
    rig.hub.starter.reply = lambda _: Script(
        [piece("x" * 200_000)] * 200 + [piece(None, "stop"), usage(1, 1)]
    )
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat(stream=True))
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(rig.url.rpartition(":")[2]))
        head = [f"POST {sent.path} HTTP/1.1", "Host: target", f"Content-Length: {len(sent.body)}"]
        head += [f"{name}: {value}" for name, value in sent.headers.items()]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + sent.body)
        await reader.readuntil(b"\r\n\r\n")
        await rig.hub.until(lambda: rig.target.tickets.spent == 1)
        await rig.hub.until(lambda: rig.target.tickets.spent == 0, 5.0)
        writer.close()
    await rig.rest()


async def test_a_large_request_is_opened_beside_the_loop(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, ctx=65_536) as rig, rig.client() as client:
        found = await client.exchange(chat("words " * 15_000))
        assert found.text == "Hello there"
        details = await client.details()
        big = base64.b64encode(os.urandom(9_500_000)).decode()
        headers = {"Content-Type": "application/vnd.zs+json"}
        url = rig.url + "/v1/chat/completions"
        body = io.BytesIO(json.dumps({"ciphertext": big}).encode())
        async with rig.http.post(url, data=body, headers=headers) as reply:
            assert reply.status == 413
        assert details["models"][0]["context_window"] == 65_536


async def test_no_more_is_read_at_once_than_there_is_room_for(
    rig: TargetRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "HELD_BYTES", 3000)
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat())
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        assert len(sent.body) < 3000
        headers = {"Content-Type": "application/vnd.zs+json"}
        for _ in range(3):
            async with rig.http.post(rig.url + sent.path, data=b"x" * 3001, headers=headers) as reply:
                assert (reply.status, (await reply.json())["error"]["code"]) == (503, "provider_unavailable")
        # What was refused is not held any longer, and the ticket is as it was.
        assert (await client.receive(sent, ticket, "X")).text == "Hello there"


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


# --- going down


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


# --- nothing of it stays


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


async def test_images_are_not_served(rig: TargetRig) -> None:
    for path in ("/v1/images/generations", "/v1/images/edits"):
        async with rig.http.post(rig.url + path, data=b"{}") as reply:
            assert reply.status == 404


async def test_a_stream_that_is_altered_does_not_open(rig: TargetRig) -> None:
    """The client sees any frame that was moved: the target binds each to its place."""
    async with rig.client() as client:
        details, ticket, raw = await reserved(client, chat(stream=True))
        sent = client.sealed_request(details, ticket, raw, tx_id="X")
        reply = await client.resend(sent)
        frames = [block for block in reply.body.split(b"\n\n") if block.startswith(b"event: zs\n")]
        assert len(frames) >= 3
        for index, frame in enumerate(frames):
            sealed = codec.unb64(frame.split(b"data: ")[1].decode())
            for at in (index - 1, index + 1):
                with pytest.raises((codec.Malformed, OverflowError)):
                    codec.unseal(ticket.key, sealed, codec.frame_aad("X", ticket.ticket_id, at))
            with pytest.raises(codec.Malformed):
                codec.unseal(ticket.key, sealed, codec.frame_aad("Y", ticket.ticket_id, index))
            codec.unseal(ticket.key, sealed, codec.frame_aad("X", ticket.ticket_id, index))
