from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.support.raw_http import RawClient
from tests.support.scripted_hub import KEY, ScriptedHub


async def get(hub: ScriptedHub, path: str) -> tuple[int, Any]:
    async with RawClient(hub.port, KEY) as client:
        client.head("GET", path)
        reply = await client.reply()
        return reply.status, reply.json


async def test_an_empty_hub_has_a_list(empty: ScriptedHub) -> None:
    assert await get(empty, "/v1/models") == (200, {"object": "list", "data": []})


async def test_the_fields_are_the_seeds_in_its_order(hub: ScriptedHub) -> None:
    status, listed = await get(hub, "/v1/models")
    assert status == 200
    (model,) = listed["data"]
    created = model.pop("created")
    assert abs(created - hub.clock.wall_ms() // 1000) < 10
    assert model == {
        "id": "tiny",
        "object": "model",
        "owned_by": "relay",
        "context_length": 512,
        "state": "cold",
        "fits": True,
        "fit_reason": "",
        "placement": "host",
        "max_model_len": 512,
    }
    async with hub.session.get(f"{hub.url}/v1/models") as reply:
        raw = await reply.text()
    order = [
        "id",
        "object",
        "created",
        "owned_by",
        "context_length",
        "state",
        "fits",
        "fit_reason",
        "placement",
        "max_model_len",
    ]
    places = [raw.index(f'"{name}":', raw.index("data")) for name in order]
    assert places == sorted(places)
    await hub.warm()
    assert (await get(hub, "/v1/models/tiny"))[1]["state"] == "warm"


@pytest.mark.parametrize("name", ["org/model", "hf.co/org/model:Q4_K_M", "a:b", "a@b", "a+b", "x.y-z_1"])
async def test_any_name_is_found_escaped_or_not(empty: ScriptedHub, name: str) -> None:
    await empty.add(name)
    for path in (name, quote(name, safe=""), quote(name, safe="/"), name + "/"):
        status, model = await get(empty, f"/v1/models/{path}")
        assert (status, model.get("id")) == (200, name), path


async def test_an_alias_is_the_model_itself(hub: ScriptedHub) -> None:
    await hub.registry.change("tiny", {"aliases": ["small"]})
    for path in ("small", "small:latest", "tiny:latest"):
        assert (await get(hub, f"/v1/models/{path}"))[1]["id"] == "tiny"


async def test_a_context_that_is_not_known_is_no_number(empty: ScriptedHub) -> None:
    """Clients that read it as a limit would take 0 for one."""
    await empty.add("far", kind="url", url="http://127.0.0.1:9/v1", ctx=0)
    model = (await get(empty, "/v1/models/far"))[1]
    assert model["context_length"] == 0
    assert "max_model_len" not in model


async def test_a_key_sees_the_models_it_may_use(hub: ScriptedHub) -> None:
    await hub.add("other")
    _, secret = await hub.ring.add("ann", {"models": ["other"]})
    async with RawClient(hub.port, secret) as client:
        client.head("GET", "/v1/models")
        assert [model["id"] for model in (await client.reply()).json["data"]] == ["other"]
        for name, status in (("other", 200), ("tiny", 404), ("nope", 404)):
            client.head("GET", f"/v1/models/{name}")
            assert (await client.reply()).status == status


@pytest.mark.parametrize("path", ["nope", "TINY", "tiny%00", "%1b%5b2J", "%ff", "x" * 300, "..%2f..%2fetc"])
async def test_an_unknown_model_is_404_in_the_dialects_shape(hub: ScriptedHub, path: str) -> None:
    async with RawClient(hub.port, KEY) as client:
        client.head("GET", f"/v1/models/{path}")
        reply = await client.reply()
    assert (reply.status, reply.code) == (404, "model_not_found")
    assert reply.json["error"]["param"] == "model"
    assert "\x1b" not in reply.json["error"]["message"]
    assert len(reply.body) < 500
