"""Models of the relay network as clients meet them: every dialect, over a socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.core.errors import PeerError
from tests.support.exchange_rig import ExchangeRig
from tests.support.scripted_engine import Script, piece
from tests.support.scripted_hub import ScriptedHub, frames, texts
from tests.support.scripted_network import TINY, ScriptedNetwork

HELLO = [{"role": "user", "content": "Hi"}]
# Route, body beside model and stream, and where an unstreamed answer has its text.
DIALECTS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "/v1/chat/completions": ({"messages": HELLO}, ("choices", 0, "message", "content")),
    "/v1/responses": ({"input": "Hi", "max_output_tokens": 50}, ("output", 0, "content", 0, "text")),
    "/v1/messages": ({"messages": HELLO, "max_tokens": 50}, ("content", 0, "text")),
    "/api/chat": ({"messages": HELLO}, ("message", "content")),
    "/api/generate": ({"prompt": "Hi"}, ("response",)),
}
ROUTES = list(DIALECTS)


@pytest.fixture
async def network(empty: ScriptedHub) -> ScriptedNetwork:
    """What the client's key may use, for 5000 microunits a day."""
    empty.network = made = ScriptedNetwork()
    await let(empty)
    return made


async def let(hub: ScriptedHub, credit: int = 5000) -> None:
    """A key that may use the network, in place of the default one."""
    spec, secret = await hub.ring.add("ann", {"network": True, "credit_per_day": credit})
    hub.session.headers["Authorization"] = f"Bearer {secret}"
    assert spec.network


async def ask(hub: ScriptedHub, route: str, headers: Any = None, **fields: Any) -> tuple[int, Any, str]:
    body = {"model": "net/lab/tiny", **DIALECTS[route][0], **fields}
    async with hub.session.post(hub.url + route, json=body, headers=headers) as reply:
        assert not [name for name in reply.headers if name.lower().startswith("x-zs")]
        return reply.status, reply.headers, await reply.text()


def dug(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("route", ROUTES)
async def test_every_dialect_whole(empty: ScriptedHub, network: ScriptedNetwork, route: str) -> None:
    status, _, text = await ask(empty, route, stream=False)
    assert status == 200, text
    found = json.loads(text)
    assert dug(found, DIALECTS[route][1]) == "Hello"
    assert found["model"] == "net/lab/tiny"
    assert network.told[0].receipt_ok
    assert empty.quotas.credits.standing(empty.ring.spec("ann").id).spent == 300


@pytest.mark.parametrize("route", ROUTES)
async def test_every_dialect_streamed(empty: ScriptedHub, network: ScriptedNetwork, route: str) -> None:
    status, headers, text = await ask(empty, route, stream=True)
    assert status == 200
    assert "Hel" in text and "lo" in text
    assert headers["x-request-id"]
    if route == "/v1/chat/completions":
        assert texts(text) == "Hello" and frames(text)[-1] == "[DONE]"
    await empty.idle()
    assert network.told[0].receipt_ok
    assert network.bodies[0]["stream"] is True


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("stream", [True, False])
async def test_errors_have_their_status_and_a_next_step(
    empty: ScriptedHub, network: ScriptedNetwork, route: str, stream: bool
) -> None:
    network.fault = PeerError("operators_unreachable", "every node of it is down", retry_after=60)
    status, headers, text = await ask(empty, route, stream=stream)
    assert (status, headers["Retry-After"]) == (503, "60")
    assert "every node of it is down: see `relaydesk relays`" in text
    if route.startswith("/v1/messages"):
        assert json.loads(text)["error"]["type"] == "overloaded_error"
    elif route.startswith("/v1"):
        assert json.loads(text)["error"]["code"] == "operators_unreachable"


@pytest.mark.parametrize("route", ROUTES)
async def test_what_breaks_in_a_stream_is_said_in_it(
    empty: ScriptedHub, network: ScriptedNetwork, route: str
) -> None:
    network.reply = lambda _: Script([piece("Hel"), PeerError("upstream_unreachable", "the relay hung up")])
    status, _, text = await ask(empty, route, stream=True)
    assert status == 200 and "Hel" in text
    assert "the relay hung up: send the request again" in text
    assert "[DONE]" not in text


async def test_completions_have_no_route_there(empty: ScriptedHub, network: ScriptedNetwork) -> None:
    body = {"model": "net/lab/tiny", "prompt": "Once"}
    async with empty.session.post(f"{empty.url}/v1/completions", json=body) as reply:
        error = (await reply.json())["error"]
        assert (reply.status, error["code"], error["param"]) == (400, "unsupported", "model")
        assert "/v1/chat/completions" in error["message"]


async def test_headers(empty: ScriptedHub, network: ScriptedNetwork) -> None:
    await empty.add("tiny")
    chat = "/v1/chat/completions"
    for relay, model, status in (
        ("required", "net/lab/tiny", 200),
        ("AUTO", "net/lab/tiny", 200),
        ("off", "net/lab/tiny", 400),
        ("off", "tiny", 200),
        ("required", "tiny", 400),
        ("sometimes", "tiny", 400),
    ):
        got, _, text = await ask(empty, chat, {"X-Zs-Relay": relay}, model=model)
        assert got == status, (relay, model, text)
        if status == 400:
            assert json.loads(text)["error"]["param"] == "X-Zs-Relay"
    got, _, text = await ask(empty, chat, {"X-Zs-Require-TEE": "1"})
    assert (got, json.loads(text)["error"]["code"]) == (503, "no_tee_capacity")
    # Nothing of any other header goes anywhere, nor does it change anything.
    count = len(network.bodies)
    noise = {"X-Zs-Usage-Frame": "1", "X-Zs-Relay-Target-Op": "7", "X-Zs-Receipt": "x", "X-Zs-Made-Up": "1"}
    assert (await ask(empty, chat, noise))[0] == 200
    assert network.bodies[count] == network.bodies[0]


async def test_the_lists(empty: ScriptedHub, network: ScriptedNetwork) -> None:
    await empty.add("tiny")
    cold = msgspec.structs.replace(TINY, id="lab/cold", warm=False)
    network.models_ = (TINY, cold, msgspec.structs.replace(TINY, id="a b"))

    async def get(path: str) -> Any:
        async with empty.session.get(empty.url + path) as reply:
            return await reply.json()

    listed = {each["id"]: each for each in (await get("/v1/models"))["data"]}
    assert list(listed) == ["tiny", "net/lab/tiny", "net/lab/cold"]
    assert [each["placement"] for each in listed.values()] == ["host", "network", "network"]
    assert [each["state"] for each in listed.values()] == ["cold", "warm", "unavailable"]
    assert "pricing" not in listed["tiny"]
    assert await get("/v1/models/net/lab/tiny") == listed["net/lab/tiny"]
    assert await get("/v1/models/net%2Flab%2Ftiny") == listed["net/lab/tiny"]
    tags = [each["name"] for each in (await get("/api/tags"))["models"]]
    assert tags == ["tiny:latest", "net/lab/tiny:latest"]
    for name in tags:
        async with empty.session.post(f"{empty.url}/api/show", json={"model": name}) as reply:
            assert reply.status == 200
    assert (await get("/api/ps"))["models"] == []
    # Whoever may not use them does not see them.
    empty.session.headers["Authorization"] = f"Bearer {empty.authenticator.secret()}"
    assert [each["id"] for each in (await get("/v1/models"))["data"]] == ["tiny"]
    assert (await get("/v1/models/net/lab/tiny"))["error"]["code"] == "model_not_found"
    assert [each["name"] for each in (await get("/api/tags"))["models"]] == ["tiny:latest"]
    status, _, text = await ask(empty, "/v1/chat/completions")
    assert (status, json.loads(text)["error"]["code"]) == (403, "refused")


async def test_a_key_that_lists_its_models(empty: ScriptedHub, network: ScriptedNetwork) -> None:
    network.models_ = (TINY, msgspec.structs.replace(TINY, id="other"))
    await empty.ring.change("ann", {"models": ["net/lab/tiny"]})
    async with empty.session.get(f"{empty.url}/v1/models") as reply:
        assert [each["id"] for each in (await reply.json())["data"]] == ["net/lab/tiny"]
    assert (await ask(empty, "/v1/chat/completions"))[0] == 200
    assert (await ask(empty, "/v1/chat/completions", model="net/other"))[0] == 404


async def test_credit_that_is_used_up_is_said_and_not_retried(
    empty: ScriptedHub, network: ScriptedNetwork
) -> None:
    network.price, network.amount = 3000, 2500
    assert (await ask(empty, "/v1/chat/completions"))[0] == 200
    status, headers, text = await ask(empty, "/v1/chat/completions")
    error = json.loads(text)["error"]
    assert (status, error["code"], error["type"]) == (429, "credit_per_day_exceeded", "insufficient_quota")
    assert headers["x-should-retry"] == "false"
    assert "has 2500 of its 5000 of the day left" in error["message"]


async def test_the_audit_says_who_carried_and_who_read_it(
    empty: ScriptedHub, network: ScriptedNetwork
) -> None:
    await ask(empty, "/v1/chat/completions")
    network.fault = PeerError("no_relay_available", "none")
    await ask(empty, "/v1/chat/completions")
    found: list[AuditRecord] = []
    for _ in range(300):
        # They are written beside the answers.
        if len(found := await empty.audit.newest(AuditFilter(), 10)) == 2:
            break
        await asyncio.sleep(0.01)
    failed, done = found
    assert (done.model, done.placement, done.machines) == ("net/lab/tiny", "network", ("7:2",))
    assert (done.relays, done.targets, done.paid, done.outcome) == (("5:1",), ("7:2",), 300, "done")
    assert (failed.placement, failed.machines, failed.paid) == ("", (), 0)
    assert (failed.outcome, failed.code) == ("failed", "no_relay_available")


async def test_over_the_real_exchange(tmp_path: Path, empty: ScriptedHub) -> None:
    """A minimal target behind minimal relays: the prompt is in nothing that a relay saw."""
    sentence = "the heron waits behind the third lock"
    (tmp_path / "rig").mkdir()
    async with ExchangeRig(tmp_path / "rig") as rig:
        empty.network = rig.exchange
        await let(empty, 10**9)
        async with empty.session.get(f"{empty.url}/v1/models") as reply:
            (entry,) = (await reply.json())["data"]
        assert (entry["id"], entry["state"]) == ("net/lab/tiny", "warm")
        said: dict[str, Any] = {"messages": [{"role": "user", "content": sentence}], "max_tokens": 64}
        said["options"] = {"num_predict": 64}
        for route in ("/v1/chat/completions", "/v1/messages", "/api/chat"):
            for stream in (True, False):
                status, _, text = await ask(empty, route, stream=stream, provider={"only": ["7"]}, **said)
                assert status == 200, text
                assert "forty" in text
        status, _, text = await ask(
            empty, "/v1/chat/completions", **said, stream=False, provider={"only": ["8"]}
        )
        assert (status, json.loads(text)["error"]["code"]) == (503, "no_pinned_operator")
        await empty.idle()
        ref = str(rig.ref(rig.targets[0]))
        ended = [view for view in empty.journal.view().recent if view.status == 200]
        assert len(ended) == 6
        assert {view.targets for view in ended} == {(ref,)}
        assert all(view.relays and view.paid for view in ended)
        spent = empty.quotas.credits.standing(empty.ring.spec("ann").id)
        assert (spent.spent, spent.held) == (sum(view.paid for view in ended), 0)
        # What was booked is what the receipts said.
        tickets = await rig.tickets()
        assert spent.spent == sum(each.claim.values.amount for each in tickets if each.claim)
        for seen in rig.seen:
            assert sentence.encode() not in seen


@pytest.mark.parametrize("host_only", [True, False])
async def test_no_byte_leaves_for_a_model_of_this_hub(
    tmp_path: Path, empty: ScriptedHub, host_only: bool
) -> None:
    """It cannot run here, and a target offers the same id."""
    (tmp_path / "rig").mkdir()
    async with ExchangeRig(tmp_path / "rig") as rig:
        empty.network = rig.exchange
        await let(empty, 10**9)
        assert (await ask(empty, "/v1/chat/completions", max_tokens=64))[0] == 200, "the control"
        before = len(rig.seen)
        assert before > 0
        await empty.add("lab/tiny", host_only=host_only)
        empty.pool.memory.pretend_mib = 1
        for route in ROUTES:
            for relay in ({}, {"X-Zs-Relay": "auto"}, {"X-Zs-Relay": "off"}):
                status, _, text = await ask(empty, route, relay, model="lab/tiny", stream=False)
                assert status == 503 and "net/" not in text, (route, relay, text)
            status, _, _ = await ask(empty, route, {"X-Zs-Relay": "required"}, model="lab/tiny")
            assert status == 400
        assert len(rig.seen) == before
