from __future__ import annotations

import json

import pytest

from relaydesk.core.gateway.paths import bare_segments
from relaydesk.surfaces.public.app import GENERATION, route_table
from relaydesk.surfaces.public.routing import templates
from tests.support.raw_http import RawClient, Reply
from tests.support.scripted_hub import KEY, ScriptedHub

CHAT = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()
SPELLINGS = ["{0}", "{0}/", "/{0}", "/v1{0}", "/api{0}", "/api/v1//{0}//", "{0}?x=/v1//y&z=%2F"]


async def ask(hub: ScriptedHub, method: str, path: str, key: str | None = KEY, body: bytes = b"") -> Reply:
    async with RawClient(hub.port, key) as client:
        client.head(method, path, {"Content-Length": str(len(body))} if body else None)
        client.send(body)
        return await client.reply()


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_every_spelling_is_served_without_a_redirect(hub: ScriptedHub, spelling: str) -> None:
    bare = spelling != "/api{0}"  # there /chat/completions would be a path of the other dialect
    for path in ("/v1/chat/completions", "/chat/completions")[: 1 + bare]:
        reply = await ask(hub, "POST", spelling.format(path), body=CHAT)
        assert (reply.status, reply.json["object"]) == (200, "chat.completion"), path
    for path in ("/v1/models", "/models")[: 1 + bare]:
        assert (await ask(hub, "GET", spelling.format(path))).json["data"][0]["id"] == "tiny"
        assert (await ask(hub, "GET", spelling.format(path), key=None)).status == 401
    # One name in the books, however it was asked for.
    assert {view.route for view in hub.journal.view().recent} == {"/v1/chat/completions"}


def test_every_route_below_v1_is_served_without_it_too() -> None:
    bare = bare_segments(templates(route_table()))
    assert {path.split("/")[2] for path in GENERATION if path.startswith("/v1/")} <= bare
    assert "models" in bare
    assert "healthz" not in bare


@pytest.mark.parametrize("name", ["org/model", "hf.co/org/model:Q4_K_M", "v1/models/api"])
async def test_an_id_keeps_its_slashes(empty: ScriptedHub, name: str) -> None:
    await empty.add(name)
    for path in (f"/v1/models/{name}", f"/models/{name}/", f"//v1/v1/models//{name}"):
        assert (await ask(empty, "GET", path)).json["id"] == name
    reply = await ask(empty, "GET", "/v1/models/" + name.replace("/", "//", 1))
    assert (reply.status, reply.code) == (404, "model_not_found")


@pytest.mark.parametrize(
    "path",
    ["/v1%2Fmodels", "/v1/models%2F", "/%2Fv1/models", "/v1/../v1/models", "/%%376%31/models",
     "/v1//%%36dodels", "/tags", "/v1", "/v1/v1", "/V1/models", "/v1/models;x", "/v1\\models", "*"],
)  # fmt: skip
async def test_what_only_looks_like_a_route_is_none(hub: ScriptedHub, path: str) -> None:
    assert (await ask(hub, "GET", path)).status in (400, 404)
    assert (await ask(hub, "GET", path, key=None)).status in (400, 401)


@pytest.mark.parametrize("path", ["/healthz", "//healthz", "/healthz//", "/%68ealthz", "http://any/healthz"])
async def test_health_is_open_however_it_is_spelt(hub: ScriptedHub, path: str) -> None:
    assert (await ask(hub, "GET", path, key=None)).json == {"status": "ok"}


async def test_methods_are_kept_through_every_spelling(hub: ScriptedHub) -> None:
    for path in ("/v1/models", "/v1//models/", "/models"):
        reply = await ask(hub, "DELETE", path)
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
        async with hub.session.head(f"{hub.url}{path}") as head:
            assert head.status == 200


async def test_nobody_is_told_to_go_on_where_nothing_is(hub: ScriptedHub) -> None:
    for method, path, status in (("POST", "/nothing", 404), ("PUT", "/v1/models", 405)):
        async with RawClient(hub.port, KEY) as client:
            client.head(method, path, {"Content-Length": "9", "Expect": "100-continue"})
            assert (await client.reply()).status == status
