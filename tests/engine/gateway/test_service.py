from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import FaultError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.engine.gateway.run import Run, Stranger
from tests.support.scripted_hub import ScriptedHub

ANN = Caller("ann", "ann")


def body(**fields: Any) -> bytes:
    return msgspec.json.encode({"messages": [{"role": "user", "content": "Hi"}], **fields})


async def refused(hub: ScriptedHub, data: bytes) -> tuple[str, str | None]:
    with pytest.raises(FaultError) as caught:
        await hub.gateway.open(data, chat_plan, Incoming(ANN, "/v1", "r"))
    assert hub.journal.in_flight == 0
    return caught.value.fault.code, caught.value.fault.param


async def test_nothing_is_loaded_by_a_refusal(hub: ScriptedHub) -> None:
    assert await refused(hub, b"{") == ("invalid_json", None)
    assert await refused(hub, body(n=99)) == ("invalid_request", "n")
    assert await refused(hub, body(model="nope")) == ("model_not_found", "model")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert (await refused(hub, body(messages=[{"role": "user", "content": [image]}])))[0] == "unsupported"
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert await refused(hub, body(tools=[tool])) == ("unsupported", "tools")
    assert hub.starter.starts == []
    # None of them became work; all of them are shown.
    assert hub.journal.in_flight == 0
    assert [(view.model, view.status) for view in hub.journal.view().recent] == [
        ("", 400),
        ("", 400),
        ("", 404),
        ("", 400),
        ("", 400),
    ][::-1]


async def test_a_model_that_cannot_be_placed_is_a_failed_request(hub: ScriptedHub) -> None:
    hub.pool.memory.pretend_mib = 10
    assert await refused(hub, body()) == ("model_unavailable", None)
    (view,) = hub.journal.view().recent
    assert (view.id, view.status, view.state, view.model) == ("r", 503, "failed", "tiny")


async def test_nothing_is_taken_while_the_node_starts_or_drains(hub: ScriptedHub) -> None:
    hub.accepting = False
    assert (await refused(hub, body()))[0] == "shutting_down"
    assert (await refused(hub, b"junk"))[0] == "shutting_down"


async def test_an_answer_is_under_the_name_that_was_asked_for(hub: ScriptedHub) -> None:
    await hub.registry.change("tiny", {"aliases": ["small"]})
    for asked, shown in (("small", "small"), ("tiny:latest", "tiny:latest"), (None, "tiny"), ("", "tiny")):
        run = await hub.gateway.open(body(model=asked), chat_plan, Incoming(ANN, "/v1", "r"))
        assert json.loads(await run.whole())["model"] == shown
    assert len(hub.starter.starts) == 1
    assert {view.model for view in hub.journal.view().recent} == {"tiny"}


async def test_says_whether_an_answer_is_near(hub: ScriptedHub) -> None:
    run = await hub.gateway.open(body(), chat_plan, Incoming(ANN, "/v1", "r"))
    assert not run.warm
    await run.whole()
    run = await hub.gateway.open(body(), chat_plan, Incoming(ANN, "/v1", "r"))
    assert run.warm
    run.leave()


async def test_a_prompt_beyond_every_vocabulary_needs_no_engine(hub: ScriptedHub) -> None:
    long = body(messages=[{"role": "user", "content": "word " * 200_000}])
    with pytest.raises(FaultError) as caught:
        await hub.gateway.open(long, chat_plan, Incoming(ANN, "/v1", "r"))
    fault = caught.value.fault
    assert (fault.code, fault.param) == ("context_length_exceeded", "messages")
    assert "maximum context length is 512 tokens, but the prompt has at least 9" in fault.message
    assert hub.starter.starts == []


NETWORK = Incoming(Caller("network", "network"), "/v1", "r")


def stranger(hub: ScriptedHub, data: bytes, **more: Any) -> Run:
    given = {"model": "tiny", "limit": 64, "stranger": Stranger(1, 0.05), **more}
    return hub.gateway.open_stranger(data, chat_plan, NETWORK, **given)


async def test_a_stranger_never_causes_a_load(hub: ScriptedHub) -> None:
    with pytest.raises(FaultError) as caught:
        await stranger(hub, body()).whole()
    assert caught.value.fault.code == "model_unloaded"
    assert hub.starter.starts == []
    await hub.idle()


async def test_a_stranger_has_no_quota_and_is_served_while_the_node_goes_down(hub: ScriptedHub) -> None:
    await hub.warm()
    hub.accepting = False
    run = stranger(hub, body())
    assert b"Hello there" in await run.whole()
    assert run.exact and (run.record.key, run.record.completion_tokens) == ("network", 2)
    await hub.idle()


async def test_a_strangers_output_is_bounded_over_all_choices(hub: ScriptedHub) -> None:
    await hub.warm()
    await stranger(hub, body(n=2, max_tokens=99), limit=9).whole()
    await stranger(hub, body(max_tokens=5), limit=9).whole()
    assert [each["max_tokens"] for each in hub.starter.engine("tiny").bodies] == [4, 4, 5]
    with pytest.raises(FaultError) as caught:
        stranger(hub, body(n=3), limit=2)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", "n")
    with pytest.raises(FaultError) as caught:
        stranger(hub, body(messages=[{"role": "user", "content": "word " * 300_000}]))
    assert caught.value.fault.code == "context_length_exceeded"
    await hub.idle()


async def test_a_stranger_waits_only_so_long(hub: ScriptedHub) -> None:
    await hub.warm()
    slots = hub.pool.slots("tiny")
    assert slots is not None
    async with slots.slot("ann"):
        with pytest.raises(FaultError) as caught:
            await stranger(hub, body()).whole()
    assert caught.value.fault.code == "queue_full"
    await hub.idle()
