"""Reserves over real HTTP: the ticket and its terms, and each refusal with what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledger_rig import Key
from tests.support.scripted_engine import Script, answer
from tests.support.target_rig import ANN, MODEL, TargetRig, chat
from tests.support.wire import codec
from tests.support.wire.client import RESERVE, MinimalClient
from tests.support.wire.exchange import Refused, Reserved

PRICED = (500_000, 2_000_000)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[TargetRig]:
    async with TargetRig(tmp_path, rates=PRICED) as rig:
        yield rig


async def asked(
    client: MinimalClient, count: int = 100, output: int = 50, model: str = MODEL, **more: Any
) -> Reserved:
    return await client.reserve(await client.details(), model, count, output, **more)


async def refused(client: MinimalClient, *args: Any, **more: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        await asked(client, *args, **more)
    return caught.value.status, caught.value.code


async def posted(
    rig: TargetRig, body: bytes, media: str = RESERVE, **headers: str
) -> tuple[int, str, dict[str, str]]:
    async with rig.http.post(
        rig.url + "/v1/zs/reserve", data=body, headers={"Content-Type": media, **headers}
    ) as reply:
        return reply.status, (await reply.json())["error"]["code"], dict(reply.headers)


async def test_the_ticket_has_the_offers_terms(rig: TargetRig) -> None:
    async with rig.client() as client:
        found = await asked(client, 1001, 50, stream=True)
    ticket = found.ticket
    assert (ticket["input_rate"], ticket["output_rate"], ticket["cache_read_rate"]) == (*PRICED, 500_000)
    # 1001 at 0.5 USD for a million is 500.5, 50 at 2 is 100; there is no fee and no least price.
    assert (ticket["max_price"], ticket["min_price"]) == (501 + 100, 0)
    assert ticket["expires_at"] - rig.clock.wall_ms() // 1000 in (119, 120)
    assert ticket["stream"] is True
    assert set(found.response) == {"ticket", "wrapped_response_key"}


async def test_details_list_what_is_served_now(rig: TargetRig) -> None:
    async with rig.client() as client:
        details = await client.details()
        (model,) = details["models"]
        assert (model["id"], model["context_window"]) == (MODEL, 4096)
        assert (model["input_rate_usd_per_1m"], model["output_rate_usd_per_1m"]) == (0.5, 2.0)
        assert details["relaydesk_ledger"] is True and details["min_charge_output_tokens"] == 0
        rig.hub.pool.runner(MODEL).unload(force=True)
        await rig.hub.until(lambda: not rig.hub.pool.is_warm(MODEL))
        assert (await client.details())["models"] == []
        # Not loaded is not served (wire §1.5): the caller goes elsewhere, and does not wait for it.
        assert await refused(client) == (400, "unsupported_model")


async def test_what_no_reserve_is(rig: TargetRig) -> None:
    envelope = json.dumps({"ciphertext": codec.b64(codec.age_seal(codec.new_reply_key()[1], b"{}"))}).encode()
    assert (await posted(rig, b"{}", "application/json"))[:2] == (415, "bad_content_type")
    assert (await posted(rig, b"x" * 70_000))[:2] == (413, "reserve_body_too_large")
    async with rig.http.post(
        rig.url + "/v1/zs/reserve", data=b"x" * 70_000, headers={"Content-Type": RESERVE}
    ) as reply:
        assert "larger than 64 KiB" in await reply.text()
    for body in (b"", b"{}", b"nothing", envelope, json.dumps({"ciphertext": "?"}).encode()):
        status, code, headers = await posted(rig, body)
        assert (status, code) == (400, "bad_reserve_envelope")
        assert headers["Access-Control-Allow-Origin"] == "*" and "X-Zs-Relay-Hop" not in headers


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"model": ""}, (400, "invalid_reserve")),
        ({"input_count": 0}, (400, "invalid_reserve")),
        ({"max_output_count": 0}, (400, "invalid_reserve")),
        ({"input_bound_version": 3}, (400, "invalid_reserve")),
        ({"proxy_recipient": "age1x"}, (400, "invalid_proxy_recipient")),
        # Of the right shape, but its checksum is wrong.
        ({"proxy_recipient": "age1" + "q" * 58}, (400, "invalid_proxy_recipient")),
        ({"payer_addr": ""}, (400, "missing_payer_addr")),
        ({"payer_addr": "A" * 58}, (400, "invalid_payer_addr")),
        ({"payer_sig": "AAAA"}, (401, "invalid_payer_sig")),
        ({"payer_addr": Key("bob").address}, (401, "invalid_payer_sig")),
        ({"model": "other"}, (400, "unsupported_model")),
        ({"image_n": 1}, (400, "unsupported_model")),
        ({"input_count": 4000, "max_output_count": 97}, (400, "context_length_exceeded")),
        ({"relaydesk_settle": 3}, (400, "invalid_reserve")),
    ],
)
async def test_what_is_refused_leaves_nothing(
    rig: TargetRig, fields: dict[str, Any], want: tuple[int, str]
) -> None:
    secret, recipient = codec.new_reply_key()
    async with rig.client() as client:
        assert await refused(client, fields=fields, reply_key=(secret, recipient)) == want
        assert rig.target.tickets.promised() == 0
        # The same reply key is good for the next one: only success is remembered.
        await asked(client, reply_key=(secret, recipient))


async def test_all_of_the_window_may_be_reserved(rig: TargetRig) -> None:
    async with rig.client() as client:
        assert (await asked(client, 4000, 96)).ticket["input_count"] == 4000


@pytest.mark.parametrize(("off", "taken"), [(-91, False), (-89, True), (29, True), (33, False)])
async def test_a_signature_holds_for_a_while_both_ways(rig: TargetRig, off: int, taken: bool) -> None:
    async with rig.client() as client:
        now = rig.clock.wall_ms() // 1000
        fields = {"payer_issued_at": now + off}
        if taken:
            await asked(client, fields=fields)
            return
        with pytest.raises(Refused) as caught:
            await asked(client, fields=fields)
        assert (caught.value.status, caught.value.code) == (401, "invalid_payer_sig")
        error = caught.value.reply.error
        assert abs(error["node_time"] - now) <= 1 and f"node_time={error['node_time']}" in error["message"]


async def test_a_reserve_is_taken_once(rig: TargetRig) -> None:
    async with rig.client() as client:
        key = codec.new_reply_key()
        await asked(client, reply_key=key)
        sent = next(each for each in client.sent if each.step == "reserve")
        again = await client.resend(sent)
        assert (again.status, again.error["code"]) == (409, "reserve_replayed")
        assert await refused(client, reply_key=key) == (409, "reserve_replayed")
        rig.clock.passed_s = 95
        await asked(client, reply_key=key)


async def test_of_the_same_at_once_one_is_taken(rig: TargetRig) -> None:
    async with rig.client() as client:
        key = codec.new_reply_key()
        details = await client.details()
        found = await asyncio.gather(
            *(client.reserve(details, MODEL, 10, 10, reply_key=key) for _ in range(5)), return_exceptions=True
        )
    assert sum(isinstance(each, Reserved) for each in found) == 1
    assert {each.code for each in found if isinstance(each, Refused)} == {"reserve_replayed"}
    assert rig.target.tickets.waiting == 1


async def test_a_siblings_reserve_is_of_no_use_here(rig: TargetRig) -> None:
    async with rig.client() as client:
        details = await client.details()
        client.target = type(client.target)(rig.ref.operator, rig.ref.node + 1, client.target.signing)
        with pytest.raises(Refused) as caught:
            await client.reserve(details, MODEL, 10, 10)
        assert caught.value.code == "invalid_payer_sig"


async def test_no_more_tickets_than_idle_slots(rig: TargetRig) -> None:
    """Half of four slots; tickets that were not used count until they have expired."""
    async with rig.client() as client:
        await asked(client)
        await asked(client)
        details = await client.details()
        with pytest.raises(Refused) as caught:
            await client.reserve(details, MODEL, 10, 10)
        assert (caught.value.status, caught.value.code) == (429, "no_capacity")
        assert caught.value.reply.headers["retry-after"] == "2"
        rig.clock.passed_s = 121
        await asked(client)


async def test_the_household_comes_first(rig: TargetRig) -> None:
    held = asyncio.Event()
    rig.hub.starter.reply = lambda _: Script([held, *answer("mine").steps])
    async with rig.client() as client:
        mine = [asyncio.create_task(rig.hub.chat()) for _ in range(3)]
        await rig.hub.until(lambda: rig.hub.starter.open == 3)
        # One slot is idle, and a stranger never gets the last one.
        assert await refused(client) == (429, "no_capacity")
        held.set()
        await asyncio.gather(*mine)
        await asked(client)


async def test_a_slot_in_use_counts_once(rig: TargetRig) -> None:
    held = asyncio.Event()
    rig.hub.starter.reply = lambda _: Script([held, *answer("yours").steps])
    async with rig.client() as client:
        await rig.credit(1_000_000)
        running = asyncio.create_task(client.exchange(chat(), opened=rig.paid()))
        await rig.hub.until(lambda: rig.hub.starter.open == 1)
        await asked(client)
        assert await refused(client) == (429, "no_capacity")
        held.set()
        await running
    await rig.rest()


@pytest.mark.parametrize(("share", "most"), [(1, 1), (3, 3), (9, 3)])
async def test_the_share_is_a_setting(tmp_path: Path, share: int, most: int) -> None:
    async with TargetRig(tmp_path, share=share) as rig, rig.client() as client:
        for _ in range(most):
            await asked(client)
        assert await refused(client) == (429, "no_capacity")


async def test_the_share_is_of_all_models_together(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, share=1) as rig, rig.client() as client:
        await rig.hub.add("other", offer=True, slots=4, ctx=4096)
        await rig.hub.warm("other")
        await asked(client)
        assert await refused(client, model="other") == (429, "no_capacity")
        rig.share = 2
        await asked(client, model="other")


async def test_books_that_fail_cost_no_ticket(rig: TargetRig) -> None:
    key = codec.new_reply_key()
    async with rig.client() as client:
        await rig.ledger.close()
        fields = {"relaydesk_voucher": "v"}
        assert await refused(client, fields=fields, reply_key=key) == (503, "provider_unavailable")
        assert rig.target.tickets.promised() == 0
        await asked(client, reply_key=key)


async def test_a_share_of_none_offers_nothing(tmp_path: Path) -> None:
    async with TargetRig(tmp_path, share=0) as rig, rig.client() as client:
        assert (await client.details())["models"] == []
        # Not loaded is not served (wire §1.5): the caller goes elsewhere, and does not wait for it.
        assert await refused(client) == (400, "unsupported_model")


async def test_vouchers_and_claims_come_with_a_reserve(rig: TargetRig) -> None:
    code = await rig.ledger.issue(5000)
    async with rig.client() as client:
        found = await asked(client, fields={"relaydesk_voucher": code})
        assert found.response["relaydesk_ledger"] == {"balance": 5000, "held": 0, "voucher": 5000}
        other = await asked(client, fields={"relaydesk_voucher": "nothing"})
        note = other.response["relaydesk_ledger"]
        assert note["balance"] == 5000 and note["refused"] == "bad_voucher"
    assert (await rig.ledger.balance(ANN.address)) == (5000, 0)


async def test_images_and_the_rest_of_it_are_no_reserve(rig: TargetRig) -> None:
    async with rig.http.get(rig.url + "/v1/zs/reserve") as reply:
        assert reply.status == 405
