"""A stranger, an operator's real node and a real model: reserve, payment, sealed answer, receipt, the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.ledger.terms import Terms
from relaydesk.core.relay.ref import NodeRef
from tests.support.hub import Hub
from tests.support.ledger_rig import Key, open_request
from tests.support.wire import exchange, prices
from tests.support.wire.client import MinimalClient, Opened
from tests.support.wire.exchange import Refused, Reserved

pytestmark = pytest.mark.engine

WORDS = "the heron stands in the cold water"
PAYER = Key("a payer")


@pytest.fixture(scope="module")
def node(smollm2: Path) -> Iterator[Hub]:
    with Hub(network="on", network_listen="127.0.0.1:0", allow_private="on", log_level="debug") as hub:
        hub.add(smollm2, "smollm2", offer=True, input_rate=500_000, output_rate=2_000_000)
        hub.load("smollm2")
        yield hub


def client_of(hub: Hub) -> MinimalClient:
    found = hub.view().network.value
    assert found is not None
    where = exchange.Target(int(found.operator), found.node, found.signing)
    return MinimalClient(found.listening[0], where, PAYER._key, direct=True)


def paid(client: MinimalClient) -> Opened:
    def opened(reserved: Reserved) -> tuple[str, dict[str, Any]]:
        ticket, ref = reserved.ticket, NodeRef(client.target.operator, client.target.node)
        terms = Terms(
            ticket["ticket_id"], PAYER.address, ticket["model"], ticket["max_price"], ticket["expires_at"]
        )
        request, tx_id = open_request(terms, PAYER, ref)
        return tx_id, {"relaydesk_open": {name: getattr(request, name) for name in request.__struct_fields__}}

    return opened


def body(**more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": f"Repeat: {WORDS}"}
    return {"model": "smollm2", "messages": [message], "temperature": 0, "seed": 1, "max_tokens": 12, **more}


async def test_a_stranger_is_served_for_money(node: Hub) -> None:
    code = node.command("issue-credit", amount=1_000_000, note="")["code"]
    async with client_of(node) as client:
        details = await client.details()
        assert [model["id"] for model in details["models"]] == ["smollm2"]
        first = await client.exchange(body(), opened=paid(client), fields={"relaydesk_voucher": code})
        second = await client.exchange(body(stream=True), opened=paid(client))
    assert first.text and second.text == first.text
    for found in (first, second):
        assert found.receipt is not None
        counts = found.receipt["actual_input_count"], found.receipt["actual_output_count"]
        usage = next((one["usage"] for one in found.documents if one.get("usage")), None)
        if usage is not None:
            assert counts == (usage["prompt_tokens"], usage["completion_tokens"])
        assert 10 < counts[0] < 100 and 0 < counts[1] <= 12
        assert found.receipt["cached_input_count"] == 0
        assert found.receipt["amount_charged"] == prices.charge(found.reserved.ticket, *counts)
    assert second.receipt is not None and second.receipt["decode_ms"] > 0
    log = node.log.read_text()
    assert "key=network" in log
    for secret in (WORDS, PAYER.address, first.text):
        assert secret not in log


async def test_going_down_a_ticket_is_honoured(node: Hub) -> None:
    """Last: it ends the node."""
    async with client_of(node) as client:
        details = await client.details()
        raw = json.dumps(body()).encode()
        reserved = await client.reserve(details, "smollm2", prices.input_bound(raw), 16)
        stopping = asyncio.create_task(asyncio.to_thread(node.stop))
        while (await client.details())["models"]:
            await asyncio.sleep(0.02)
        with pytest.raises(Refused) as caught:
            await client.reserve(details, "smollm2", 40, 8)
        assert caught.value.code == "node_draining"
        tx_id, extra = paid(client)(reserved)
        sent = client.sealed_request(details, reserved, raw, tx_id=tx_id, header=extra)
        assert (await client.receive(sent, reserved, tx_id)).text
        assert await stopping == 0
