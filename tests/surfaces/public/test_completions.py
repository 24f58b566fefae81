"""``POST /v1/completions`` over HTTP, the engine scripted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from tests.support import gguf_builder
from tests.support.scripted_engine import Script, usage
from tests.support.scripted_hub import ScriptedHub, frames


def chunk(text: str = "", finish: str | None = None) -> bytes:
    """A chunk as llama.cpp's server writes it."""
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    return msgspec.json.encode({"choices": [choice], "id": "chatcmpl-x", "model": "/m/secret.gguf"})


def says(*texts: str, prompt: int = 3, finish: str = "stop") -> Script:
    return Script([*map(chunk, texts), chunk("", finish), usage(prompt, len(texts))])


async def ask(hub: ScriptedHub, **fields: Any) -> tuple[int, Any]:
    async with hub.session.post(f"{hub.url}/v1/completions", json={"prompt": "Hi", **fields}) as reply:
        text = await reply.text()
        return reply.status, text if "stream" in reply.headers["content-type"] else json.loads(text)


def texts_of(stream: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for frame in frames(stream):
        for choice in frame["choices"] if frame != "[DONE]" else ():
            found[choice["index"]] = found.get(choice["index"], "") + choice["text"]
    return found


async def test_a_stream_and_a_whole_answer_say_the_same(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: says("a", " b\n")
    status, whole = await ask(hub)
    assert status == 200
    assert whole["choices"] == [{"text": "a b\n", "index": 0, "logprobs": None, "finish_reason": "stop"}]
    assert whole["usage"]["total_tokens"] == 5
    assert whole["object"] == "text_completion"
    assert "secret" not in json.dumps(whole)
    _, stream = await ask(hub, stream=True)
    assert texts_of(stream) == {0: "a b\n"}
    assert '"usage"' not in stream
    assert frames(stream)[-1] == "[DONE]"
    _, stream = await ask(hub, stream=True, stream_options={"include_usage": True})
    assert frames(stream)[-2]["choices"] == []
    assert frames(stream)[-2]["usage"]["prompt_tokens"] == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_prompts_and_choices_each_in_their_place(hub: ScriptedHub, stream: bool) -> None:
    hub.starter.reply = lambda body: says(f"{body['prompt']}{body['seed']}", prompt=len(body["prompt"]))
    options = {"stream_options": {"include_usage": True}} if stream else {}
    status, body = await ask(hub, prompt=["a", "bcd"], n=2, seed=7, stream=stream, **options)
    assert status == 200
    found = texts_of(body) if stream else {each["index"]: each["text"] for each in body["choices"]}
    assert found == {0: "a7", 1: "a8", 2: "bcd7", 3: "bcd8"}
    counted = frames(body)[-2]["usage"] if stream else body["usage"]
    assert (counted["prompt_tokens"], counted["completion_tokens"], counted["total_tokens"]) == (4, 4, 8)
    (view,) = hub.journal.view().recent
    assert (view.route, view.prompt_tokens, view.completion_tokens, view.choices) == (
        "/v1/completions",
        4,
        4,
        4,
    )
    paths = {
        body["prompt"] if isinstance(body["prompt"], str) else ""
        for body in hub.starter.engine("tiny").bodies
    }
    assert paths == {"a", "bcd"}


async def test_many_prompts_leave_others_their_turn(hub: ScriptedHub) -> None:
    gate = asyncio.Event()
    hub.starter.reply = lambda body: Script([gate, *says(body["prompt"]).steps])
    await hub.warm()
    many = asyncio.create_task(ask(hub, prompt=[f"p{n}" for n in range(100)]))
    slots = hub.pool.runner("tiny").slots
    assert slots is not None
    await hub.until(lambda: slots.waiting == 14)  # sixteen at once, two of them in the slots
    other = asyncio.create_task(ask(hub, prompt="other"))
    await hub.until(lambda: slots.waiting == 15)
    gate.set()
    assert (await other)[1]["choices"][0]["text"] == "other"
    status, body = await many
    assert [each["text"] for each in body["choices"]] == [f"p{n}" for n in range(100)]
    begun = [each["prompt"] for each in hub.starter.engine("tiny").bodies]
    assert begun.index("other") <= 20
    assert status == 200
    await hub.idle()


async def test_echo_and_a_prompt_of_token_ids(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: says(" there")
    assert (await ask(hub, echo=True))[1]["choices"][0]["text"] == "Hi there"
    assert texts_of((await ask(hub, echo=True, stream=True))[1]) == {0: "Hi there"}
    assert (await ask(hub, prompt=[1, 3]))[0] == 200
    assert hub.starter.engine("tiny").bodies[-1]["prompt"] == [1, 3]
    status, body = await ask(hub, prompt=[[1], [3, 4]])
    assert (status, body["error"]["param"]) == (400, "prompt[1]")


async def test_a_gap_is_filled_by_a_model_that_can(hub: ScriptedHub) -> None:
    status, body = await ask(hub, suffix="after")
    assert (status, body["error"]["param"], body["error"]["code"]) == (400, "suffix", "unsupported")
    path = hub.dir / "coder.gguf"
    tokens = gguf_builder.array(gguf_builder.STRING, ["<PRE>", "<SUF>", "<MID>", "a"])
    path.write_bytes(gguf_builder.tiny(tokenizer__ggml__tokens=tokens))
    await hub.add("coder", path=str(path))
    hub.starter.reply = lambda _: says("x")
    assert (await ask(hub, suffix="after", model="coder"))[0] == 200
    assert hub.starter.engine("coder").bodies[-1]["prompt"] == ["", 0, "Hi", 1, "after", 2]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_overflow_names_the_prompt(hub: ScriptedHub, stream: bool) -> None:
    error = {
        "code": 400,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9,
        "n_ctx": 4,
        "message": "x",
    }
    hub.starter.reply = lambda _: Script(status=400, body=msgspec.json.encode({"error": error}))
    await hub.warm()
    status, body = await ask(hub, stream=stream)
    assert (status, body["error"]["code"], body["error"]["param"]) == (
        400,
        "context_length_exceeded",
        "prompt",
    )
    assert "maximum context length is 4 tokens, but the prompt has 9" in body["error"]["message"]


async def test_an_engine_that_stops_in_the_middle_is_an_error_in_the_stream(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: Script([chunk("a")])
    await hub.warm()
    _, stream = await ask(hub, stream=True)
    assert frames(stream)[-1]["error"]["code"] == "engine_failed"
    assert "[DONE]" not in stream


async def test_an_answer_of_nothing(hub: ScriptedHub) -> None:
    hub.starter.reply = lambda _: Script([chunk("", "length"), usage(0, 0)])
    _, body = await ask(hub, prompt="")
    assert body["choices"][0]["text"] == ""
    assert body["usage"]["total_tokens"] == 0
