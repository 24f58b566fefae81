from __future__ import annotations

import base64
import ipaddress
import logging
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from relaydesk.core.access.caller import DEFAULT_CALLER
from relaydesk.core.access.exposure import Exposure
from relaydesk.core.access.proxies import Client
from relaydesk.surfaces.public import app as app_module
from relaydesk.surfaces.public import models as models_route
from relaydesk.surfaces.public.state import CALLER, CLIENT, Handler
from tests.support.raw_http import RawClient
from tests.support.scripted_hub import KEY, ScriptedHub

PATHS = ["/x", "/v1", "/v1/models", "/v1/models/tiny", "/v1/models/nope", "/v1/chat/completions", "/nothing",
         "/healthz/x", "/readyz/x", "/HEALTHZ", "/healthz%2f", "/%2e%2e/healthz",
         "/v1/healthz", "/healthz%00"]  # fmt: skip


@pytest.mark.parametrize("key", [None, "", "wrong", KEY + "x", KEY[:-1]])
async def test_without_a_valid_key_everything_is_401_whether_it_exists_or_not(
    hub: ScriptedHub, key: str | None
) -> None:
    bodies = set()
    for method in ("GET", "POST", "OPTIONS", "DELETE", "PROPFIND"):
        for path in PATHS:
            async with RawClient(hub.port, key) as client:
                client.head(method, path)
                reply = await client.reply()
            assert reply.status == 401, (method, path)
            assert reply.code == "invalid_api_key"
            assert reply.headers["www-authenticate"] == 'Bearer realm="relaydesk"'
            assert reply.headers["x-should-retry"] == "false"
            bodies.add(reply.body)
    assert len(bodies) == 1
    assert hub.journal.requests_total == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"bearer  {KEY} "},
        {"Authorization": KEY},
        {"Authorization": "Basic " + base64.b64encode(f"user:{KEY}".encode()).decode()},
        {"x-api-key": KEY},
        {"api-key": KEY},
        {"Authorization": "Bearer ", "x-api-key": KEY},
        {"Authorization": "Bearer undefined", "api-key": KEY},
        {"Authorization": f"Bearer {KEY}", "api-key": KEY},
        {"Authorization": f"Bearer {KEY}", "x-api-key": "another"},
        {"Authorization": "Bearer wrong\r\nAuthorization: Bearer " + KEY},
    ],
    ids=lambda headers: " ".join(headers),
)
async def test_a_key_opens_in_every_spelling(hub: ScriptedHub, headers: dict[str, str]) -> None:
    async with RawClient(hub.port, None) as client:
        client.head("GET", "/v1/models", headers)
        assert (await client.reply()).status == 200
        client.head(
            "POST", "/v1/chat/completions", {**headers, "Expect": "100-continue", "Content-Length": "2"}
        )
        assert (await client.reply()).status == 100


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({}, "no API key was given"),
        ({"Authorization": "Bearer "}, "no API key was given"),
        ({"Authorization": "Bearer undefined"}, "no API key was given"),
        ({"x-api-key": "wrong"}, "the API key is not valid"),
        ({"Cookie": f"key={KEY}", "Proxy-Authorization": f"Bearer {KEY}"}, "no API key was given"),
    ],
)
async def test_a_refusal_tells_a_missing_key_from_a_wrong_one(
    hub: ScriptedHub, headers: dict[str, str], sentence: str
) -> None:
    for path in ("/v1/models", "/api/tags"):
        async with RawClient(hub.port, None) as client:
            client.head("GET", path, headers)
            reply = await client.reply()
        assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Bearer realm="relaydesk"')
        error = reply.json["error"]
        assert (error if path == "/api/tags" else error["message"]).startswith(sentence)


async def test_health_needs_no_key(hub: ScriptedHub) -> None:
    for path in ("/healthz", "/readyz", "/%68ealthz", "/health", "/v1/health", "/healthz/"):
        async with RawClient(hub.port, None) as client:
            client.head("GET", path)
            reply = await client.reply()
        assert (reply.status, reply.json) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("abc", True),
        ("req-1.2_3", True),
        ("A" * 64, True),
        ("A" * 65, False),
        ("", False),
        ("-x", False),
        ("a b", False),
        ("a/b", False),
        ("é", False),
        ("x;y", False),
    ],
)
async def test_a_short_plain_request_id_is_kept(hub: ScriptedHub, given: str, kept: bool) -> None:
    for key, path in ((KEY, "/v1/models"), (KEY, "/nothing"), (None, "/v1/models"), (None, "/healthz")):
        async with RawClient(hub.port, key) as client:
            client.head("GET", path, {"X-Request-ID": given})
            shown = (await client.reply()).headers["x-request-id"]
        assert (shown == given) is kept
        assert kept or (shown.startswith("req_") and len(shown) == 28)


async def test_each_request_has_an_id_of_its_own(hub: ScriptedHub) -> None:
    ids = {(await hub.chat(stream=stream))[1]["x-request-id"] for stream in (False, True) for _ in range(2)}
    assert len(ids) == 4
    assert {view.id for view in hub.journal.view().recent} == ids


async def test_a_clients_id_leads_to_its_request(hub: ScriptedHub) -> None:
    async with hub.session.post(
        f"{hub.url}/v1/chat/completions",
        json={"messages": [{"role": "user", "content": "Hi"}]},
        headers={"x-request-id": "mine"},
    ) as reply:
        assert reply.headers["x-request-id"] == "mine"
    view = hub.journal.find("mine")
    assert view is not None
    assert view.status == 200


async def test_a_failure_of_ours_says_nothing_of_it(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("the password is hunter2 in /etc/shadow")

    monkeypatch.setattr(models_route, "list_body", broken)
    caplog.set_level(logging.ERROR)
    async with RawClient(hub.port, KEY) as client:
        client.head("GET", "/v1/models", {"x-request-id": "mine"})
        reply = await client.reply()
        assert (reply.status, reply.code) == (500, "internal_error")
        assert b"hunter2" not in reply.body
        assert "mine" in reply.json["error"]["message"]
        assert reply.json["error"]["type"] == "server_error"
        assert "hunter2" in caplog.text  # the operator's log has it
        # The connection goes on.
        client.head("GET", "/healthz")
        assert (await client.reply()).status == 200


async def test_who_asks_is_known_behind_a_proxy_that_the_operator_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Client] = []

    @web.middleware
    async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
        seen.append(request[CLIENT])
        request[CALLER] = DEFAULT_CALLER
        return await handler(request)

    monkeypatch.setattr(app_module, "with_key", note)
    forged = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    for proxies in ((), (ipaddress.ip_network("127.0.0.0/8"),)):
        async with (
            ScriptedHub(tmp_path, exposure=Exposure(proxies=proxies)) as running,
            running.session.get(f"{running.url}/v1/models", headers=forged) as reply,
        ):
            assert reply.status == 200
    assert seen == [Client("127.0.0.1", "http"), Client("203.0.113.9", "https", "127.0.0.1")]


async def test_a_mounted_hub_is_served_with_its_prefix_and_without(tmp_path: Path) -> None:
    async with ScriptedHub(tmp_path, exposure=Exposure(prefix="/at/home")) as running:
        for path, key, status in (
            ("/at/home/v1/models", KEY, 200), ("/at/home/models", KEY, 200), ("/v1/models", KEY, 200),
            ("/at/home/healthz", None, 200), ("/at/home/v1/models", None, 401),
            ("/at/homely/models", KEY, 404),
        ):  # fmt: skip
            async with RawClient(running.port, key) as client:
                client.head("GET", path)
                assert (await client.reply()).status == status, path
        async with RawClient(running.port, None) as client:
            client.head("GET", "/at/home/api/tags")
            assert isinstance((await client.reply()).json["error"], str)


async def test_a_key_made_for_paths_opens_there_and_nowhere_else(hub: ScriptedHub) -> None:
    _, secret = await hub.ring.add("editor", {"in_path": True, "models": ["tiny"]})
    for path, status in (
        (f"/k/{secret}/v1/models", 200), (f"/k/{secret}/models/tiny", 200),
        (f"//k/{secret}//v1/v1/models/", 200),
        (f"/k/{secret}x/v1/models", 401), (f"/k/{KEY}/v1/models", 401), ("/k//v1/models", 401),
        (f"/v1/k/{secret}/models", 401), (f"/v1/models?k={secret}", 401),
    ):  # fmt: skip
        async with RawClient(hub.port, None) as client:
            client.head("GET", path)
            reply = await client.reply()
        assert reply.status == status, path
        assert secret not in reply.body.decode()
    async with RawClient(hub.port, secret) as client:
        client.head("GET", "/v1/models")
        assert (await client.reply()).status == 401
    async with RawClient(hub.port, None) as client:
        client.head(
            "POST", f"/k/{secret}/v1/chat/completions", {"Content-Length": "2", "Expect": "100-continue"}
        )
        assert (await client.reply()).status == 100


async def test_models_may_be_listed_without_a_key_where_the_operator_says_so(tmp_path: Path) -> None:
    routes = ("/v1/models", "/v1/models/tiny", "/api/tags", "/api/version", "/api/ps")
    for opened in (True, False):
        (tmp_path / str(opened)).mkdir()
        exposure = Exposure(open_discovery=opened)
        async with ScriptedHub(tmp_path / str(opened), exposure=exposure) as running:
            await running.add("tiny")
            for path in routes:
                async with RawClient(running.port, None) as client:
                    client.head("GET", path)
                    assert (await client.reply()).status == (200 if opened else 401), path
            async with RawClient(running.port, None) as client:
                client.head("POST", "/v1/chat/completions", {"Content-Length": "0"})
                assert (await client.reply()).status == 401


async def test_a_url_with_a_key_in_it_is_not_passed_on(hub: ScriptedHub) -> None:
    _, secret = await hub.ring.add("editor", {"in_path": True, "models": ["tiny"]})
    async with RawClient(hub.port, None) as client:
        client.head("GET", f"/k/{secret}/v1/models")
        assert (await client.reply()).headers["referrer-policy"] == "no-referrer"
