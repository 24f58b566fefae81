"""Counting over HTTP: what Anthropic's clients read."""

from __future__ import annotations

from relaydesk.engine.infer.engine import EngineReply
from tests.support.scripted_hub import ScriptedHub

PATH = "/v1/messages/count_tokens"


async def test_a_count_and_an_error(hub: ScriptedHub) -> None:
    await hub.warm()

    async def json(method: str, path: str, body: bytes | None = None) -> EngineReply:
        return EngineReply(200, {}, b'{"input_tokens":42}')

    hub.starter.engine("tiny").json = json  # type: ignore[method-assign]
    asked = {"messages": [{"role": "user", "content": "Hi"}]}
    async with hub.session.post(hub.url + PATH, json=asked) as reply:
        assert reply.status == 200
        assert reply.headers["x-request-id"]
        assert await reply.json() == {"input_tokens": 42}
    async with hub.session.post(hub.url + PATH, json={"messages": []}) as reply:
        assert reply.status == 400
        error = (await reply.json())["error"]
    assert error["type"] == "invalid_request_error"
    assert "messages is empty" in error["message"]
