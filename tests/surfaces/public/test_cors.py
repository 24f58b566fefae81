from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from relaydesk.core.access.exposure import Exposure
from relaydesk.core.access.origins import Origins
from tests.support.raw_http import RawClient, Reply
from tests.support.scripted_engine import Script, answer
from tests.support.scripted_hub import KEY, ScriptedHub

CHAT = "/v1/chat/completions"
BODY = b'{"messages":[{"role":"user","content":"Hi"}],"stream":true}'
OBSIDIAN = "app://obsidian.md"
EVIL = "https://evil.example"
NAMES = "authorization,content-type,x-stainless-foo-new,openai-beta"


async def ask(
    hub: ScriptedHub,
    method: str,
    path: str,
    headers: Mapping[str, str],
    key: str | None = None,
    body: bytes = b"",
) -> Reply:
    async with RawClient(hub.port, key) as client:
        client.head(method, path, {**headers, "Content-Length": str(len(body))} if body else headers)
        client.send(body)
        return await client.reply()


def asks(origin: str, method: str = "POST") -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": NAMES,
    }


def opened(reply: Reply) -> set[str]:
    return {name for name in reply.headers if name.startswith("access-control-")}


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/api/tags", "/nothing", "/", "/healthz"])
async def test_a_preflight_needs_no_key(hub: ScriptedHub, path: str) -> None:
    reply = await ask(hub, "OPTIONS", path, asks(OBSIDIAN))
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == OBSIDIAN
    assert reply.headers["access-control-allow-headers"] == NAMES
    assert reply.headers["access-control-allow-methods"] == "POST"
    assert "Origin" in reply.headers["vary"].split(", ")
    assert "access-control-request-headers" in reply.headers["vary"].lower()
    assert reply.headers["x-request-id"]


@pytest.mark.parametrize("key", [None, KEY])
async def test_a_foreign_origin_gets_no_header_anywhere(hub: ScriptedHub, key: str | None) -> None:
    for origin in (EVIL, "null", "http://localhost.evil.example"):
        for method, path in (
            ("OPTIONS", CHAT),
            ("GET", "/v1/models"),
            ("GET", "/healthz"),
            ("GET", "/nothing"),
        ):
            reply = await ask(hub, method, path, asks(origin), key)
            assert not opened(reply), (origin, path)
            assert reply.headers["vary"] == "Origin"
            assert method != "OPTIONS" or reply.status == (401 if key is None else 405)


async def test_only_a_genuine_preflight_passes_the_key(hub: ScriptedHub) -> None:
    for headers in ({"Origin": OBSIDIAN}, {"Access-Control-Request-Method": "POST"}, {}):
        assert (await ask(hub, "OPTIONS", CHAT, headers)).status == 401
    assert (await ask(hub, "GET", "/v1/models", asks(OBSIDIAN))).status == 401
    assert (await ask(hub, "POST", CHAT, asks(OBSIDIAN), body=BODY)).status == 401
    assert hub.journal.requests_total == 0


async def test_a_public_page_may_reach_a_private_address_only_where_it_is_allowed(hub: ScriptedHub) -> None:
    private = {"Access-Control-Request-Private-Network": "true"}
    reply = await ask(hub, "OPTIONS", CHAT, asks(OBSIDIAN) | private)
    assert reply.headers["access-control-allow-private-network"] == "true"
    assert not opened(await ask(hub, "OPTIONS", CHAT, asks(EVIL) | private))


@pytest.mark.parametrize(
    ("method", "path", "key", "body", "status"),
    [
        ("GET", "/v1/models", KEY, b"", 200),
        ("GET", "/v1/models", None, b"", 401),
        ("GET", "/nothing", KEY, b"", 404),
        ("PUT", "/v1/models", KEY, b"", 405),
        ("POST", CHAT, KEY, b"{", 400),
        ("POST", CHAT, KEY, BODY, 200),
        ("GET", "/healthz", None, b"", 200),
    ],
)
async def test_every_answer_may_be_read_by_an_allowed_page(
    hub: ScriptedHub, method: str, path: str, key: str | None, body: bytes, status: int
) -> None:
    reply = await ask(hub, method, path, {"Origin": OBSIDIAN}, key, body)
    assert reply.status == status
    assert reply.headers["access-control-allow-origin"] == OBSIDIAN
    assert "x-request-id" in reply.headers["access-control-expose-headers"]
    assert reply.headers["vary"] == "Origin"
    assert reply.headers["x-request-id"]


async def test_errors_of_an_engine_may_be_read_too(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: Script(status=500, body=b"{}")
    reply = await ask(hub, "POST", CHAT, {"Origin": OBSIDIAN}, KEY, BODY)
    assert reply.headers["access-control-allow-origin"] == OBSIDIAN
    hub.starter.reply = lambda _: answer("x")


@pytest.fixture
async def open_hub(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    exposure = Exposure(origins=Origins(["https://chat.example.org", "null"]))
    async with ScriptedHub(tmp_path, exposure=exposure) as running:
        yield running


async def test_the_setting_adds_origins(open_hub: ScriptedHub) -> None:
    for origin, allowed in (
        ("https://chat.example.org", True),
        ("null", True),
        (OBSIDIAN, True),
        (EVIL, False),
    ):
        reply = await ask(open_hub, "OPTIONS", CHAT, asks(origin))
        assert (reply.status == 204) is allowed
        assert reply.headers.get("access-control-allow-origin") == (origin if allowed else None)


async def test_each_dialect_finds_the_requests_id_where_it_looks(hub: ScriptedHub) -> None:
    for path, names in (
        ("/v1/messages", {"x-request-id", "request-id"}),
        ("/v1/chat/completions", {"x-request-id"}),
    ):
        async with hub.session.post(hub.url + path, data=b"{", headers={"x-request-id": "mine"}) as reply:
            found = {name.lower() for name, value in reply.headers.items() if value == "mine"}
            assert found == names
