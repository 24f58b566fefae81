"""``POST /v1/embeddings`` over HTTP, the engine scripted."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from typing import Any

import jsonschema
import pytest

from relaydesk.core.gateway.embeddings.schema import ANSWER, REQUEST
from tests.support.scripted_engine import DIMENSIONS, Script, whole
from tests.support.scripted_hub import ScriptedHub


async def ask(hub: ScriptedHub, **fields: Any) -> tuple[int, dict[str, str], Any]:
    async with hub.session.post(f"{hub.url}/v1/embeddings", json=fields) as reply:
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return reply.status, headers, json.loads(await reply.read())


async def test_an_answer_is_as_described(hub: ScriptedHub) -> None:
    request = {"input": ["red", "blue"], "model": "tiny"}
    jsonschema.validate(request, REQUEST)
    status, headers, body = await ask(hub, **request)
    assert status == 200
    jsonschema.validate(body, ANSWER)
    assert headers["content-type"].startswith("application/json")
    assert headers["x-request-id"]
    assert [each["index"] for each in body["data"]] == [0, 1]
    assert [len(each["embedding"]) for each in body["data"]] == [DIMENSIONS, DIMENSIONS]
    assert (body["model"], body["usage"]) == ("tiny", {"prompt_tokens": 7, "total_tokens": 7})


async def test_base64_is_the_same_vector(hub: ScriptedHub) -> None:
    floats = (await ask(hub, input="red"))[2]["data"][0]["embedding"]
    text = (await ask(hub, input="red", encoding_format="base64"))[2]["data"][0]["embedding"]
    assert list(struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(text, validate=True))) == floats


async def test_many_inputs_come_in_order(hub: ScriptedHub) -> None:
    texts = [f"text {number}" for number in range(100)]
    body = (await ask(hub, input=texts))[2]
    again = (await ask(hub, input=texts[70]))[2]
    assert [each["index"] for each in body["data"]] == list(range(100))
    assert body["data"][70]["embedding"] == again["data"][0]["embedding"]


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({}, "invalid_request", "input"),
        ({"input": []}, "invalid_request", "input"),
        ({"input": "a", "encoding_format": "int8"}, "invalid_request", "encoding_format"),
        ({"input": "a", "dimensions": 7}, "unsupported", "dimensions"),
        ({"input": [1, 2]}, "invalid_request", "input"),
        ({"input": "x" * 513}, "context_length_exceeded", "input"),
        ({"input": ["x", "x" * 513]}, "context_length_exceeded", "input[1]"),
    ],
)
async def test_refusals(hub: ScriptedHub, fields: dict[str, Any], code: str, param: str) -> None:
    status, headers, body = await ask(hub, **fields)
    assert status == 400
    assert (body["error"]["code"], body["error"]["param"]) == (code, param)
    assert body["error"]["type"] == "invalid_request_error"
    assert headers["x-should-retry"] == "false"


async def test_a_client_that_leaves_frees_its_place(hub: ScriptedHub) -> None:
    gate = asyncio.Event()

    def held(path: str, body: dict[str, Any]) -> Script:
        return Script(body=whole(path, body).body, before=[gate] if path == "/v1/embeddings" else [])

    hub.starter.whole = held
    asking = asyncio.create_task(ask(hub, input="red"))
    await hub.until(lambda: hub.starter.open == 1)
    asking.cancel()
    await asyncio.wait([asking])
    await hub.idle()
    assert hub.journal.view().recent[0].state == "cancelled"
    hub.starter.whole = whole
    assert (await ask(hub, input="red"))[0] == 200
