from __future__ import annotations

import pytest

from tests.support.raw_http import RawClient
from tests.support.scripted_hub import KEY, ScriptedHub


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("POST", "/v1/nothing", 404, "not_found"),
        ("GET", "/v2/models", 404, "not_found"),
        ("GET", "/../../etc/passwd", 404, "not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("PATCH", "/v1/models/tiny", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
        ("PROPFIND", "/v1/models", 405, "method_not_allowed"),
    ],
)
async def test_what_is_not_there(hub: ScriptedHub, method: str, path: str, status: int, code: str) -> None:
    async with RawClient(hub.port, KEY) as client:
        client.head(method, path)
        reply = await client.reply()
    assert (reply.status, reply.code) == (status, code)
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert reply.headers["x-should-retry"] == "false"
    assert ("allow" in reply.headers) == (status == 405)
    assert "(file)" not in reply.json["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/models", "/nothing", "/healthz", "/readyz"])
async def test_no_answer_tells_versions(hub: ScriptedHub, path: str) -> None:
    for key in (KEY, None):
        async with RawClient(hub.port, key) as client:
            client.head("GET", path)
            reply = await client.reply()
        assert reply.headers["server"] == "relaydesk"
        assert "ython" not in str(reply.headers)


async def test_a_connection_serves_one_request_after_another(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, KEY) as client:
        for path, status in (("/v1/models", 200), ("/nothing", 404), ("/v1/models/tiny", 200)):
            client.head("GET", path)
            assert (await client.reply()).status == status


async def test_head_has_no_body(hub: ScriptedHub) -> None:
    async with hub.session.head(f"{hub.url}/v1/models") as reply:
        assert reply.status == 200
        assert await reply.read() == b""
