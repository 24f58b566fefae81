from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.core.access.exposure import Exposure
from tests.support.raw_http import RawClient, Reply
from tests.support.scripted_hub import KEY, ScriptedHub


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    """A hub as one on a loopback address is told to be."""
    async with ScriptedHub(tmp_path, exposure=Exposure(hosts=frozenset({"hub.example.org"}))) as running:
        yield running


async def ask(hub: ScriptedHub, head: str) -> Reply:
    async with RawClient(hub.port, None) as client:
        client.send(head.encode() + f"\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
        return await client.reply()


@pytest.mark.parametrize("path", ["/v1/models", "/healthz", "/nothing", "/api/tags"])
async def test_a_foreign_host_is_refused_with_any_key(own: ScriptedHub, path: str) -> None:
    reply = await ask(own, f"GET {path} HTTP/1.1\r\nHost: rebound.evil.example:{own.port}")
    assert reply.status == 403
    error = reply.json["error"]
    message = error if path == "/api/tags" else error["message"]
    assert "RELAY_HOSTS" in message
    assert "rebound.evil.example" in message
    assert path == "/api/tags" or error["code"] == "host_not_allowed"
    assert reply.headers["x-request-id"]


async def test_not_even_a_preflight_passes(own: ScriptedHub) -> None:
    reply = await ask(
        own,
        "OPTIONS /v1/models HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://localhost:1\r\n"
        "Access-Control-Request-Method: GET",
    )
    assert reply.status == 403


@pytest.mark.parametrize(
    "host", ["localhost:1", "127.0.0.1", "[::1]:8383", "a.localhost", "hub.example.org:443"]
)
async def test_this_machines_names_are_served(own: ScriptedHub, host: str) -> None:
    assert (await ask(own, f"GET /v1/models HTTP/1.1\r\nHost: {host}")).status == 200


async def test_of_two_hosts_both_must_be_own(own: ScriptedHub) -> None:
    reply = await ask(own, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example")
    assert reply.status in (400, 403)


async def test_without_a_host_it_is_no_browser(own: ScriptedHub) -> None:
    assert (await ask(own, "GET /v1/models HTTP/1.0")).status == 200


async def test_elsewhere_a_hub_may_be_called_anything(hub: ScriptedHub) -> None:
    assert (await ask(hub, "GET /v1/models HTTP/1.1\r\nHost: whatever.example")).status == 200
