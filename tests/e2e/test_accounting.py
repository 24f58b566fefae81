"""What a request costs is what it produced, whatever the client writes into it."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from tests.support.hub import Hub, chat_body

pytestmark = pytest.mark.engine


async def send(hub: Hub, body: dict[str, Any]) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession(headers=hub.headers()) as session,
        session.post(f"{hub.url}/v1/chat/completions", json=body) as reply,
    ):
        return reply.status, await reply.text(), reply.headers["x-request-id"]


def recorded(hub: Hub, request_id: str) -> dict[str, Any]:
    record: dict[str, Any] = hub.command("show-request", id=request_id)
    return record


async def test_n_predict_does_not_override_max_tokens(hub: Hub) -> None:
    status, text, request_id = await send(hub, chat_body(max_tokens=4, n_predict=40))
    assert status == 200
    assert json.loads(text)["usage"]["completion_tokens"] == 4
    assert recorded(hub, request_id)["completion_tokens"] == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_each_choice_is_counted(hub: Hub, stream: bool) -> None:
    body = chat_body(max_tokens=4, n=4, stream=stream, logit_bias={"2": -100})
    if stream:
        body["stream_options"] = {"include_usage": True}
    status, text, request_id = await send(hub, body)
    assert status == 200
    if stream:
        chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        usage = chunks[-1]["usage"]
        assert {choice["index"] for chunk in chunks for choice in chunk["choices"]} == {0, 1, 2, 3}
    else:
        whole = json.loads(text)
        usage = whole["usage"]
        assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2, 3]
    assert usage["completion_tokens"] == 16
    assert usage["total_tokens"] == usage["prompt_tokens"] + 16
    assert recorded(hub, request_id)["completion_tokens"] == 16


async def test_a_stream_that_did_not_ask_is_counted_and_shows_nothing(hub: Hub) -> None:
    status, text, request_id = await send(hub, chat_body(max_tokens=5, stream=True, logit_bias={"2": -100}))
    assert status == 200
    assert '"usage"' not in text
    record = recorded(hub, request_id)
    assert record["completion_tokens"] == 5
    assert record["prompt_tokens"] > 5


@pytest.mark.parametrize("stream", [False, True])
async def test_an_overflow_is_a_400_with_both_numbers(hub: Hub, stream: bool) -> None:
    status, text, _ = await send(hub, chat_body("word " * 3000, stream=stream))
    error = json.loads(text)["error"]
    assert status == 400
    assert error["code"] == "context_length_exceeded"
    assert "maximum context length is 1024 tokens" in error["message"]
    assert "30" in error["message"]


async def test_no_path_and_no_port_in_any_answer(hub: Hub) -> None:
    for body in (
        chat_body(),
        chat_body(stream=True, logprobs=True, top_logprobs=2),
        chat_body("word " * 3000),
        chat_body(model="nobody"),
        chat_body(temperature="hot"),
    ):
        _, text, _ = await send(hub, body)
        assert "/" not in text.replace("/s", "").replace("GET /v1/models", "").replace(
            "GET /api/tags", ""
        ).replace("</", ""), text
        assert ".gguf" not in text
        assert ".sock" not in text
