"""Ollama's routes for vectors over HTTP."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from relaydesk.surfaces.public.ollama_embed import _written
from tests.support.scripted_engine import DIMENSIONS
from tests.support.scripted_hub import ScriptedHub
from tests.surfaces.public.test_ollama import ask


async def embed(hub: ScriptedHub, **fields: Any) -> tuple[int, Any]:
    status, headers, body = await ask(hub, "/api/embed", {"model": "tiny", **fields})
    assert headers["content-type"].startswith("application/json")
    return status, body


async def older(hub: ScriptedHub, **fields: Any) -> tuple[int, Any]:
    status, _, body = await ask(hub, "/api/embeddings", {"model": "tiny", **fields})
    return status, body


async def test_a_vector_for_each_text_and_the_same_on_every_route(hub: ScriptedHub) -> None:
    status, body = await embed(hub, input=["red", "blue"])
    assert status == 200
    assert body["model"] == "tiny"
    assert [len(vector) for vector in body["embeddings"]] == [DIMENSIONS, DIMENSIONS]
    assert body["total_duration"] > body["load_duration"] > 0
    assert body["prompt_eval_count"] == 7
    assert (await embed(hub, input="red"))[1]["embeddings"] == [body["embeddings"][0]]
    assert (await older(hub, prompt="blue")) == (200, {"embedding": body["embeddings"][1]})
    theirs = (await ask(hub, "/v1/embeddings", {"model": "tiny", "input": "red"}))[2]
    assert theirs["data"][0]["embedding"] == body["embeddings"][0]
    assert theirs["usage"]["prompt_tokens"] == 3
    routes = [each.route for each in hub.journal.view().recent]
    assert routes == ["/v1/embeddings", "/api/embeddings", "/api/embed", "/api/embed"]


async def test_without_a_text_the_model_is_loaded_and_nothing_charged(hub: ScriptedHub) -> None:
    assert (await embed(hub, keep_alive="1m"))[1]["embeddings"] == []
    engine = hub.registry.embedder("tiny")
    assert hub.pool.is_warm(engine)
    assert hub.pool.runner(engine).keeps_s() == 60
    assert await older(hub, keep_alive=0) == (200, {"embedding": []})
    await hub.until(lambda: hub.starter.alive == [])
    assert [each.prompt_tokens for each in hub.journal.view().recent] == [0, 0]


async def test_a_text_that_is_too_long_is_cut_only_where_that_is_wanted(hub: ScriptedHub) -> None:
    words = "ab" * 400  # a token a byte, and 512 fit
    status, body = await embed(hub, input=words)
    assert (status, body["prompt_eval_count"]) == (200, 512)
    for status, body in (await embed(hub, input=words, truncate=False), await older(hub, prompt=words)):
        assert status == 400
        assert "maximum context length is 512 tokens" in body["error"]


async def test_errors_are_plain_strings_that_name_the_field(hub: ScriptedHub) -> None:
    for fields, words in (
        ({"input": ["a", 1]}, "input[1]"),
        ({"input": "a", "options": {"num_ctx": "x"}}, "options.num_ctx"),
        ({"input": "a", "dimensions": 7}, "dimensions"),
    ):
        status, body = await embed(hub, **fields)
        assert status == 400
        assert words in body["error"]
    assert (await embed(hub, model="nope", input="a"))[0] == 404
    assert (await older(hub, prompt=["a"]))[0] == 400


async def test_many_vectors_are_written_with_turns_for_others_between() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    written = await _written([struct.pack("<2f", 0.5, 1)] * 100)
    counting.cancel()
    assert written == [b"[0.5,1.0]"] * 100
    assert turns == 3
