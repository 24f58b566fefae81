from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import FaultError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.incoming import Incoming
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
