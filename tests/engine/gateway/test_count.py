"""Counting over a scripted engine: what it is asked, and what becomes of the record."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import FaultError, PeerError
from relaydesk.core.gateway.anthropic.plan import count_work
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.engine.infer.engine import EngineReply
from tests.support.scripted_hub import ScriptedHub

ANN = Caller("ann", "ann")
BODY = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "system": "Be brief."}).encode()


async def count(hub: ScriptedHub, body: bytes = BODY) -> int:
    return await hub.gateway.count(body, count_work, Incoming(ANN, "/v1", "r"))


class Counter:
    """Stands in for an engine's `json` and keeps what it was asked."""

    def __init__(self, hub: ScriptedHub, answer: Any) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._answer = answer
        hub.starter.engine("tiny").json = self.json  # type: ignore[method-assign]

    async def json(self, method: str, path: str, body: bytes | None = None) -> EngineReply:
        self.asked.append((method, path, json.loads(body or b"")))
        await self.gate.wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return EngineReply(200, {}, json.dumps(self._answer).encode())


async def test_the_engine_counts_beside_its_answers(hub: ScriptedHub) -> None:
    await hub.warm()
    counter = Counter(hub, {"input_tokens": 42})
    slots = hub.pool.runner("tiny").slots
    assert slots is not None
    async with slots.slot("a"), slots.slot("b"):
        assert await count(hub) == 42
    ((method, path, body),) = counter.asked
    assert (method, path) == ("POST", "/v1/chat/completions/input_tokens")
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "max_tokens" not in body
    record = hub.journal.find("r")
    assert record is not None
    assert (record.status, record.prompt_tokens, record.completion_tokens) == (200, 0, 0)
    await hub.idle()


async def test_a_cold_model_is_loaded(hub: ScriptedHub) -> None:
    # The scripted engine has no such route: that it was asked is enough.
    with pytest.raises(PeerError, match="did not say how many tokens"):
        await count(hub)
    assert hub.starter.alive == ["tiny"]
    await hub.idle()


@pytest.mark.parametrize("body", [b"{", b'{"messages":[]}', b'{"messages":[{"role":"user","content":1}]}'])
async def test_a_bad_request_loads_nothing(hub: ScriptedHub, body: bytes) -> None:
    with pytest.raises(FaultError):
        await count(hub, body)
    assert hub.starter.starts == []


async def test_an_engines_fault_ends_the_record(hub: ScriptedHub) -> None:
    await hub.warm()
    Counter(hub, PeerError("engine_failed", "gone"))
    with pytest.raises(PeerError):
        await count(hub)
    record = hub.journal.find("r")
    assert record is not None
    assert (record.status, record.state) == (502, "failed")
    await hub.idle()


async def test_a_client_may_leave(hub: ScriptedHub) -> None:
    await hub.warm()
    counter = Counter(hub, {"input_tokens": 1})
    counter.gate.clear()
    asking = asyncio.create_task(count(hub))
    await hub.until(lambda: counter.asked)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    record = hub.journal.find("r")
    assert record is not None
    assert (record.status, record.state) == (499, "cancelled")
    await hub.idle()


async def test_a_server_elsewhere_is_not_asked(hub: ScriptedHub) -> None:
    await hub.add("far", kind="url", url="http://127.0.0.1:9")
    body = json.dumps({"model": "far", "messages": [{"role": "user", "content": "Hi"}]}).encode()
    with pytest.raises(PeerError) as caught:
        await count(hub, body)
    assert caught.value.fault.code == "unsupported"
    await hub.idle()
