"""Runs over the relay network: read to the receipt, charged for what is known."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.access.key import KeySpec
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.engine.gateway.run import Run
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.scripted_hub import ScriptedHub, frames, texts
from tests.support.scripted_network import ScriptedNetwork

LIMITS = KeyLimits(tokens_per_day=1_000_000, credit_per_day=5000)
ANN = Caller("ann", "ann", KeySpec(name="ann", id="ann", created_ms=0, limits=LIMITS, network=True))


@pytest.fixture
def network(hub: ScriptedHub) -> ScriptedNetwork:
    hub.network = made = ScriptedNetwork()
    hub.quotas.limit("ann", LIMITS)
    return made


async def opened(hub: ScriptedHub, **fields: Any) -> Run:
    body = {"model": "net/lab/tiny", "messages": [{"role": "user", "content": "Hi"}], **fields}
    return await hub.gateway.open(msgspec.json.encode(body), chat_plan, Incoming(ANN, "/v1", "r"))


def books(hub: ScriptedHub) -> tuple[int, int, int, int]:
    tokens, credit = hub.quotas.standing("ann"), hub.quotas.credits.standing("ann")
    return tokens.used, tokens.reserved, credit.spent, credit.held


async def test_a_stream_is_read_to_its_receipt(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    run = await opened(hub, stream=True, stream_options={"include_usage": True})
    text = b"".join([frame async for frame in run.frames()]).decode()
    assert texts(text) == "Hello"
    assert frames(text)[-2]["usage"]["total_tokens"] == 7
    assert network.told[0].receipt_ok, "it comes behind the last word"
    assert books(hub) == (7, 0, 300, 0)
    (view,) = hub.journal.view().recent
    assert (view.model, view.placement, view.paid, view.status) == ("net/lab/tiny", "network", 300, 200)
    (body,) = network.bodies
    assert body["model"] == "lab/tiny" and body["stream"] is True
    assert {"provider", "id_slot", "cache_prompt", "return_progress"}.isdisjoint(body)


async def test_choices_are_exchanges_of_their_own(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    whole = json.loads(await (await opened(hub, n=3, seed=7)).whole())
    assert [each["message"]["content"] for each in whole["choices"]] == ["Hello"] * 3
    assert sorted(body["seed"] for body in network.bodies) == [7, 8, 9]
    assert all("n" not in body for body in network.bodies)
    assert books(hub) == (5 + 3 * 2, 0, 900, 0)
    (view,) = hub.journal.view().recent
    assert (view.targets, view.paid) == (("7:2",), 900)


async def test_who_leaves_has_used_what_came(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    gate = asyncio.Event()
    network.reply = lambda _: Script([piece("Hel"), piece("lo"), gate, piece(None, "stop"), usage(5, 2)])
    prompt = "word " * 40_000
    run = await opened(hub, stream=True, messages=[{"role": "user", "content": prompt}], max_tokens=100)
    stream = run.frames()
    text = b""
    while b"lo" not in text:
        text += await anext(stream)
    await stream.aclose()
    run.leave()
    used, reserved, spent, held = books(hub)
    # The prompt was read, and it cannot have fewer tokens than its length says; two were written.
    assert 2 + 100 < used <= 2 + len(prompt) and (reserved, spent, held) == (0, 1000, 0)
    (view,) = hub.journal.view().recent
    assert (view.state, view.completion_tokens) == ("cancelled", 2)


async def test_what_went_to_nobody_costs_nothing(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    network.fault = PeerError("operators_unreachable", "nobody answers", retry_after=60)
    for stream in (True, False):
        run = await opened(hub, stream=stream)
        with pytest.raises(PeerError) as caught:
            await (anext(run.frames()) if stream else run.whole())
        assert caught.value.fault.code == "operators_unreachable"
    assert books(hub) == (0, 0, 0, 0)
    (view, _) = hub.journal.view().recent
    assert (view.status, view.targets, view.prompt_tokens) == (503, (), 0)


async def test_a_targets_count_is_bounded_by_what_was_asked(
    hub: ScriptedHub, network: ScriptedNetwork
) -> None:
    network.reply = lambda _: Script([piece("Hi"), piece(None, "stop"), usage(10**6, 10**6)])
    whole = json.loads(await (await opened(hub, max_tokens=20)).whole())
    assert whole["usage"]["completion_tokens"] == 20
    assert whole["usage"]["prompt_tokens"] < 3000, "the bound of so short a prompt, with any template"
    assert hub.quotas.standing("ann").used == whole["usage"]["total_tokens"]


async def test_a_key_with_a_daily_limit_asks_for_no_more_than_it_has(
    hub: ScriptedHub, network: ScriptedNetwork
) -> None:
    hub.quotas.limit("ann", KeyLimits(tokens_per_day=3000, credit_per_day=5000))
    network.reply = lambda _: answer("ok", prompt=3)
    await (await opened(hub)).whole()
    assert 0 < network.bodies[0]["max_tokens"] <= 1000
    hub.quotas.limit("ann", KeyLimits(tokens_per_day=5))
    with pytest.raises(PeerError) as caught:
        await (await opened(hub)).whole()
    assert caught.value.fault.code == "tokens_per_day_exceeded"
    assert len(network.bodies) == 1
