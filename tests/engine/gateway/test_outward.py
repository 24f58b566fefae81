"""Which requests leave the hub: by name, header and key; and that no other ever does."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaydesk.core.access.caller import DEFAULT_CALLER, Caller
from relaydesk.core.access.key import KeySpec
from relaydesk.core.errors import Fault, FaultError
from relaydesk.core.gateway.anthropic.plan import count_work
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.completions.plan import completion_plan
from relaydesk.core.gateway.embeddings.request import parse_embedding
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.gateway.ollama.chat import chat_plan as ollama_chat
from relaydesk.core.gateway.ollama.generate import generate_plan
from relaydesk.engine.gateway.network_run import NetworkRun
from tests.support.scripted_engine import Script, piece
from tests.support.scripted_hub import ScriptedHub
from tests.support.scripted_network import TINY, ScriptedNetwork

ANN = Caller("ann", "ann", KeySpec(name="ann", id="ann", created_ms=0, network=True))
SHUT = Caller("bob", "bob", KeySpec(name="bob", id="bob", created_ms=0))


def incoming(caller: Caller = ANN, *relay: str, tee: str = "") -> Incoming:
    return Incoming(caller, "/v1/chat/completions", "r", "192.0.2.1", relay=relay, tee=(tee,) if tee else ())


def body(model: str | None = "net/lab/tiny", **fields: Any) -> bytes:
    return msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": "Hi"}], **fields})


async def refused(hub: ScriptedHub, data: bytes, who: Incoming, plan_of: Any = chat_plan) -> tuple[str, Any]:
    with pytest.raises(FaultError) as caught:
        await hub.gateway.open(data, plan_of, who)
    return caught.value.fault.code, caught.value.fault.param


@pytest.fixture
def network(hub: ScriptedHub) -> ScriptedNetwork:
    hub.network = made = ScriptedNetwork(price=0, amount=0)
    return made


async def test_a_key_without_the_network_is_told_the_way(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    assert await refused(hub, body(), incoming(SHUT)) == ("refused", None)
    assert await refused(hub, body(), incoming(DEFAULT_CALLER)) == ("refused", None)
    run = await hub.gateway.open(
        body(), chat_plan, incoming(msgspec.structs.replace(DEFAULT_CALLER, network=True))
    )
    assert isinstance(run, NetworkRun)
    run.leave()
    assert network.requests == []


async def test_a_hub_whose_network_is_off(hub: ScriptedHub) -> None:
    with pytest.raises(FaultError, match="RELAY_NETWORK=on") as caught:
        await hub.gateway.open(body(), chat_plan, incoming())
    assert (caught.value.fault.code, caught.value.fault.rule.retry) == ("no_operator", False)


async def test_headers(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    assert await refused(hub, body(), incoming(ANN, "off")) == ("invalid_request", "X-Zs-Relay")
    assert await refused(hub, body("tiny"), incoming(ANN, "required")) == ("invalid_request", "X-Zs-Relay")
    assert await refused(hub, body(None), incoming(ANN, "required")) == ("invalid_request", "X-Zs-Relay")
    assert await refused(hub, body("tiny"), incoming(ANN, "yes")) == ("invalid_request", "X-Zs-Relay")
    for model in ("net/lab/tiny", "tiny"):
        assert await refused(hub, body(model), incoming(tee="1")) == ("no_tee_capacity", None)
    for relay in ((), ("auto",), ("required",)):
        run = await hub.gateway.open(body(), chat_plan, incoming(ANN, *relay))
        assert isinstance(run, NetworkRun)
        run.leave()


async def test_hints_go_along_for_the_networks_models_alone(
    hub: ScriptedHub, network: ScriptedNetwork
) -> None:
    provider = {"only": ["7:2"], "sort": "price"}
    await (await hub.gateway.open(body(provider=provider), chat_plan, incoming())).whole()
    assert msgspec.json.decode(network.requests[0].hints) == provider
    assert "provider" not in network.bodies[0]
    bad = {"only": ["seven"]}
    assert await refused(hub, body(provider=bad), incoming()) == ("invalid_request", "provider.only[0]")
    run = await hub.gateway.open(body("tiny", provider=bad), chat_plan, incoming())
    assert not isinstance(run, NetworkRun)
    run.leave()


async def test_what_the_wire_has_no_route_for(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    text = msgspec.json.encode({"model": "net/lab/tiny", "prompt": "Once", "raw": True})
    assert await refused(hub, text, incoming(), completion_plan) == ("unsupported", "model")
    assert await refused(hub, text, incoming(), generate_plan) == ("unsupported", "model")
    with pytest.raises(FaultError) as caught:
        await hub.gateway.count(body(max_tokens=9), count_work, incoming())
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "model")
    data = msgspec.json.encode({"model": "net/lab/tiny", "input": "a"})
    with pytest.raises(FaultError) as caught:
        await hub.gateway.embed(data, parse_embedding, incoming())
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "model")
    with pytest.raises(FaultError) as caught:
        await hub.gateway.embed(data, parse_embedding, incoming(SHUT))
    assert caught.value.fault.code == "refused"
    assert network.requests == []


async def test_an_ollama_client_may_load_what_is_always_there(
    hub: ScriptedHub, network: ScriptedNetwork
) -> None:
    for kept, word in ((None, "load"), (0, "unload")):
        data = msgspec.json.encode({"model": "net/lab/tiny:latest", "keep_alive": kept, "stream": False})
        run = await hub.gateway.open(data, ollama_chat, incoming())
        assert msgspec.json.decode(await run.whole())["done_reason"] == word
    assert network.requests == []


async def test_a_prompt_that_fits_nobody_goes_nowhere(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    long = body(messages=[{"role": "user", "content": "x" * 6_000_000}])
    assert await refused(hub, long, incoming()) == ("context_length_exceeded", "messages")
    assert network.requests == []


async def test_a_model_that_nobody_offers_is_the_exchanges_to_say(
    hub: ScriptedHub, network: ScriptedNetwork
) -> None:
    network.models_ = ()
    run = await hub.gateway.open(body("net/other"), chat_plan, incoming())
    await run.whole()
    assert network.requests[0].model == "other"


async def test_refusals_are_on_record_once(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    await refused(hub, body(), incoming(SHUT))
    (view,) = hub.journal.view().recent
    assert (view.status, view.fault and view.fault.code) == (403, "refused")
    assert hub.journal.in_flight == 0


async def test_a_local_model_that_cannot_run_never_goes_out(
    hub: ScriptedHub, network: ScriptedNetwork
) -> None:
    """Whatever its state, and though a target offers the same id."""
    network.models_ = tuple(
        msgspec.structs.replace(TINY, id=name) for name in ("huge", "only-here", "net/huge", "big")
    )
    await hub.add("huge", ctx=512, slots=2, aliases=("big",))
    await hub.add("only-here", ctx=512, slots=2, host_only=True)
    hub.pool.memory.pretend_mib = 1
    names, uses = ("huge", "only-here", "big", "big:latest"), ((), ("auto",), ("off",))
    for name, use in itertools.product(names, uses):
        with pytest.raises(FaultError) as caught:
            await hub.gateway.open(body(name), chat_plan, incoming(ANN, *use))
        assert caught.value.fault.rule.status == 503, name
        assert caught.value.fault.code == "model_unavailable"
    assert await refused(hub, body("huge"), incoming(ANN, "required")) == ("invalid_request", "X-Zs-Relay")
    assert network.requests == []


NAMES = st.sampled_from(["tiny", "tiny:latest", "net/lab/tiny", "net/none", "none", "net/", "", None])
WORDS = st.sampled_from([(), ("auto",), ("off",), ("required",), ("on",), ("off", "required")])
KEYS = st.sampled_from(
    [
        ANN,
        SHUT,
        DEFAULT_CALLER,
        Caller("c", "c", KeySpec(name="c", id="c", created_ms=0, network=True, models=("tiny",))),
    ]
)


@given(NAMES, WORDS, KEYS, st.sampled_from(["", "1"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_only_a_net_name_of_a_key_that_may_ever_goes_out(
    hub: ScriptedHub, name: str | None, words: tuple[str, ...], who: Caller, tee: str
) -> None:
    hub.network = network = ScriptedNetwork(price=0, amount=0)
    may = who is ANN and not tee and words in ((), ("auto",), ("required",))
    try:
        run = await hub.gateway.open(body(name), chat_plan, incoming(who, *words, tee=tee))
        await run.whole()
    except FaultError:
        assert network.requests == []
    assert bool(network.requests) == (may and name in ("net/lab/tiny", "net/none"))


async def test_a_node_that_stops_says_so_in_the_stream(hub: ScriptedHub, network: ScriptedNetwork) -> None:
    network.reply = lambda _: Script([piece("Hel"), asyncio.Event()])
    run = await hub.gateway.open(body(stream=True), chat_plan, incoming())
    frames = run.frames()
    while b"Hel" not in await anext(frames):
        pass
    asyncio.get_running_loop().call_later(
        0.01, hub.gateway.refuse_away, Fault("shutting_down", "the hub is stopping")
    )
    with pytest.raises(FaultError) as caught:
        await anext(frames)
    assert caught.value.fault.code == "shutting_down"
    assert hub.journal.in_flight == 0
