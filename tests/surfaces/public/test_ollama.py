"""Ollama's routes over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from relaydesk.core.errors import EnvError, PeerError
from relaydesk.surfaces.public.ollama import REFUSED
from tests.support import gguf_builder
from tests.support.raw_http import RawClient
from tests.support.scripted_engine import Script, answer, piece, usage
from tests.support.scripted_hub import KEY, ScriptedHub

USER = {"role": "user", "content": "Hi"}
OVERFLOW = Script(
    status=400,
    body=b'{"error":{"code":400,"type":"exceed_context_size_error","message":"too long",'
    b'"n_prompt_tokens":900,"n_ctx":512}}',
)


async def ask(
    hub: ScriptedHub, path: str, body: Any = None, method: str = "POST"
) -> tuple[int, dict[str, str], Any]:
    """Status, headers, and the body decoded: a list of lines where it is a stream."""
    async with hub.session.request(method, f"{hub.url}{path}", json=body) as reply:
        text = await reply.text()
        headers = {name.lower(): value for name, value in reply.headers.items()}
        if headers.get("content-type") != "application/x-ndjson":
            return reply.status, headers, json.loads(text) if text else None
        assert text.endswith("\n") and "\n\n" not in text
        return reply.status, headers, [json.loads(line) for line in text.splitlines()]


async def chat(hub: ScriptedHub, **fields: Any) -> tuple[int, dict[str, str], Any]:
    return await ask(hub, "/api/chat", {"model": "tiny", "messages": [USER], **fields})


async def generate(hub: ScriptedHub, **fields: Any) -> tuple[int, dict[str, str], Any]:
    return await ask(hub, "/api/generate", {"model": "tiny", "prompt": "Hi", **fields})


async def test_a_chat_is_a_stream_unless_it_is_declined(hub: ScriptedHub) -> None:
    status, headers, lines = await chat(hub)
    assert (status, headers["content-type"]) == (200, "application/x-ndjson")
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-request-id"]
    assert [line["message"]["content"] for line in lines] == ["Hello", " there", ""]
    last = lines[-1]
    assert (last["done"], last["done_reason"]) == (True, "stop")
    assert (last["prompt_eval_count"], last["eval_count"]) == (5, 2)
    assert last["total_duration"] > last["load_duration"] > 0
    status, headers, whole = await chat(hub, stream=False)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert whole["message"] == {"role": "assistant", "content": "Hello there"}
    assert whole["load_duration"] == 0
    records = hub.journal.view().recent
    assert [(each.route, each.stream, each.completion_tokens) for each in records] == [
        ("/api/chat", False, 2),
        ("/api/chat", True, 2),
    ]
    await hub.idle()


async def test_generate_too(hub: ScriptedHub) -> None:
    _, headers, lines = await generate(hub, system="Be brief.")
    assert headers["content-type"] == "application/x-ndjson"
    assert [line["response"] for line in lines] == ["Hello", " there", ""]
    whole = (await generate(hub, stream=False))[2]
    assert (whole["response"], whole["done"]) == ("Hello there", True)
    asked = hub.starter.engine("tiny").bodies
    assert [each["messages"][0]["role"] for each in asked] == ["system", "user"]
    assert {each.route for each in hub.journal.view().recent} == {"/api/generate"}


async def test_the_same_question_is_the_same_to_the_engine_on_both_dialects(hub: ScriptedHub) -> None:
    await chat(hub, options={"temperature": 0, "num_predict": 4}, stream=False)
    await hub.chat(messages=[USER], temperature=0, max_tokens=4)
    # Slot and cache are the gateway's business.
    first, second = [
        {key: body[key] for key in body if key not in ("id_slot", "cache_prompt")}
        for body in hub.starter.engine("tiny").bodies
    ]
    assert first == second


async def test_a_name_with_or_without_its_tag(hub: ScriptedHub) -> None:
    for name in ("tiny", "tiny:latest"):
        assert (await chat(hub, model=name, stream=False))[2]["model"] == name
        assert (await ask(hub, "/api/show", {"model": name}))[0] == 200
    assert len(hub.starter.starts) == 1


async def test_errors_are_plain_strings_with_their_status(hub: ScriptedHub) -> None:
    status, headers, body = await chat(hub, model="nope")
    assert (status, headers["content-type"]) == (404, "application/json; charset=utf-8")
    assert body["error"].startswith("model 'nope' not found: ")
    for fields in ({"options": {"top_k": "x"}}, {"messages": 3}, {"think": True}, {"format": "xml"}):
        status, _, body = await chat(hub, **fields)
        assert (status, list(body)) == (400, ["error"])
        assert isinstance(body["error"], str)
    async with hub.session.post(f"{hub.url}/api/chat", data=b"{") as reply:
        assert reply.status == 400
        assert "not valid JSON" in (await reply.json())["error"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_prompt_that_is_too_long_is_said_in_the_words_clients_know(
    hub: ScriptedHub, stream: bool
) -> None:
    await hub.warm()
    hub.starter.reply = lambda _: OVERFLOW
    for asking in (chat, generate):
        status, headers, body = await asking(hub, stream=stream)
        assert (status, headers["content-type"]) == (400, "application/json; charset=utf-8")
        assert "maximum context length is 512 tokens" in body["error"]
    await hub.idle()


async def test_what_fails_later_is_one_line_and_the_last(hub: ScriptedHub) -> None:
    for failure in (PeerError("engine_failed", "it broke"), b'{"error":{"message":"boom"}}'):
        steps: Any = [piece("Hel"), failure]
        hub.starter.reply = lambda _, steps=steps: Script(steps)
        status, _, lines = await chat(hub)
        assert status == 200
        assert lines[0]["message"]["content"] == "Hel"
        assert list(lines[1]) == ["error"]
        assert isinstance(lines[1]["error"], str)
        assert len(lines) == 2
        assert hub.journal.view().recent[0].state == "failed"
    await hub.idle()


async def test_silence_is_filled_with_lines_like_any_other(hub: ScriptedHub) -> None:
    hub.heartbeat_s = 0.03
    hub.starter.gate.clear()
    opening = asyncio.create_task(chat(hub))
    await asyncio.sleep(0.2)
    hub.starter.gate.set()
    _, _, lines = await opening
    beats = [line for line in lines if line["message"]["content"] == "" and not line["done"]]
    assert len(beats) >= 3
    assert set(beats[0]) == {"model", "created_at", "message", "done"}
    assert "".join(line["message"]["content"] for line in lines) == "Hello there"


async def test_tool_calls_come_whole(hub: ScriptedHub) -> None:
    path = hub.dir / "tools.gguf"
    path.write_bytes(gguf_builder.tiny(tokenizer__chat_template="{% if tools %}{% endif %}"))
    await hub.add("tools", path=str(path))

    def delta(**function: str) -> bytes:
        call = {"index": 0, "function": function}
        more = {"id": "c", "type": "function"} if "name" in function else {}
        return piece(choices=[{"index": 0, "delta": {"tool_calls": [{**call, **more}]}}])

    hub.starter.reply = lambda _: Script(
        [
            delta(name="f", arguments=""),
            delta(arguments='{"city":'),
            delta(arguments='"Oslo"}'),
            piece(None, "tool_calls"),
            usage(5, 9),
        ]
    )
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    lines = (await chat(hub, model="tools", tools=tools))[2]
    calls = [{"id": "c", "function": {"index": 0, "name": "f", "arguments": {"city": "Oslo"}}}]
    assert [line["message"].get("tool_calls") for line in lines] == [calls, None]
    assert lines[-1]["done_reason"] == "stop"
    whole = (await chat(hub, model="tools", tools=tools, stream=False))[2]
    assert whole["message"] == {"role": "assistant", "content": "", "tool_calls": calls}
    status, _, body = await chat(hub, tools=tools)
    assert status == 400
    assert "tools" in body["error"]


async def test_load_and_unload(hub: ScriptedHub) -> None:
    _, headers, lines = await generate(hub, prompt="", keep_alive="10m")
    assert headers["content-type"] == "application/x-ndjson"
    assert [(line["done"], line["done_reason"], line["response"]) for line in lines] == [(True, "load", "")]
    assert lines[0]["load_duration"] > 0
    assert hub.pool.is_warm("tiny")
    (loaded,) = (await ask(hub, "/api/ps", method="GET"))[2]["models"]
    assert loaded["name"] == "tiny:latest"
    _, headers, body = await chat(hub, messages=[], keep_alive=0, stream=False)
    assert (headers["content-type"], body["done_reason"]) == ("application/json", "unload")
    assert (await ask(hub, "/api/ps", method="GET"))[2] == {"models": []}
    assert hub.starter.alive == []
    _, headers, lines = await generate(hub, prompt="", keep_alive=0)
    assert headers["content-type"] == "application/x-ndjson"
    assert lines[0]["done_reason"] == "unload"
    assert hub.journal.tokens_total == 0
    status, _, body = await chat(hub, model="nope", messages=[], keep_alive=0)
    assert status == 404
    await hub.idle()


async def test_a_load_that_fails_has_its_status_or_is_a_line(hub: ScriptedHub) -> None:
    hub.starter.load_s = 0.05
    hub.starter.errors.append(EnvError("model_load_failed", "no such luck"))
    status, _, lines = await generate(hub, prompt="")
    assert (status, lines) == (200, [{"error": "no such luck"}])
    await asyncio.sleep(0.2)
    hub.starter.errors.append(EnvError("model_load_failed", "no such luck"))
    status, _, body = await generate(hub, prompt="", stream=False)
    assert status == 503
    assert "no such luck" in body["error"]
    await hub.idle()


async def test_leaving_frees_everything(hub: ScriptedHub) -> None:
    await hub.warm()
    gate = asyncio.Event()
    hub.starter.reply = lambda _: Script([piece("a"), gate, piece("b", "stop")])
    body = json.dumps({"messages": [USER]}).encode()
    async with RawClient(hub.port, KEY) as client:
        client.head("POST", "/api/chat", {"Content-Length": str(len(body))})
        client.send(body)
        assert (await client.reply()).status == 200
    await hub.idle()
    assert hub.journal.view().recent[0].status == 499


async def test_tags_lists_what_a_request_would_be_served_from(hub: ScriptedHub) -> None:
    await hub.add("other")
    standing = hub.pool.standing(hub.registry.entry("tiny"))
    assert standing is not None
    hub.pool.memory.pretend_mib = standing.need.mib * 3 // 2  # room for one of them
    status, _, body = await ask(hub, "/api/tags", method="GET")
    assert status == 200
    assert [model["name"] for model in body["models"]] == ["other:latest", "tiny:latest"]
    gate = asyncio.Event()
    hub.starter.reply = lambda _: Script([piece("a"), gate, *answer("b").steps])
    busy = asyncio.create_task(chat(hub))
    await hub.until(lambda: hub.starter.open == 1)
    # One that has to wait for another to fall idle does not vanish.
    body = (await ask(hub, "/api/tags", method="GET"))[2]
    assert [model["name"] for model in body["models"]] == ["other:latest", "tiny:latest"]
    gate.set()
    await busy
    hub.pool.memory.pretend_mib = 10
    body = (await ask(hub, "/api/tags", method="GET"))[2]
    assert [model["name"] for model in body["models"]] == ["tiny:latest"]  # loaded, so it fits
    assert [model["name"] for model in (await ask(hub, "/api/ps", method="GET"))[2]["models"]] == [
        "tiny:latest"
    ]
    assert (await ask(hub, "/v1/models", method="GET"))[2]["data"][0]["fits"] is False


async def test_an_empty_hub_has_lists(empty: ScriptedHub) -> None:
    for path in ("/api/tags", "/api/ps"):
        assert (await ask(empty, path, method="GET"))[2] == {"models": []}


async def test_show_by_either_name_of_the_field(hub: ScriptedHub) -> None:
    await hub.add("other")
    page = (await ask(hub, "/api/show", {"model": "tiny"}))[2]
    assert page == (await ask(hub, "/api/show", {"name": "tiny:latest", "verbose": True}))[2]
    assert page["model_info"]["general.architecture"] == "llama"
    assert page["model_info"]["llama.context_length"] == 512
    assert page["capabilities"] == ["completion"]
    assert str(hub.dir) not in json.dumps(page)
    for wrong, status in (({"model": "nope"}, 404), ({"model": 3}, 400), ([], 400)):
        assert (await ask(hub, "/api/show", wrong))[0] == status


async def test_a_key_sees_and_lets_go_only_the_models_it_may_use(hub: ScriptedHub) -> None:
    await hub.add("other")
    for name in ("tiny", "other"):
        await hub.warm(name)
    _, secret = await hub.ring.add("ann", {"models": ["other"]})
    headers = {"Authorization": f"Bearer {secret}"}
    async with aiohttp.ClientSession(hub.url, headers=headers) as session:
        for path in ("/api/tags", "/api/ps"):
            async with session.get(path) as reply:
                models = (await reply.json())["models"]
            assert [model["name"] for model in models] == ["other:latest"]
        letting_go = {"messages": [], "keep_alive": 0}
        for path, fields in (("/api/show", {}), ("/api/chat", letting_go)):
            for name in ("tiny", "nope"):
                async with session.post(path, json={"model": name, **fields}) as reply:
                    assert reply.status == 404
                    assert (await reply.json())["error"].startswith(f"model '{name}' not found: ")
    assert sorted(hub.starter.alive) == ["other", "tiny"]


@pytest.mark.parametrize("path", ["/", "/api/version", "/api/tags", "/api/ps"])
async def test_reading_routes_answer_head_too(hub: ScriptedHub, path: str) -> None:
    assert (await ask(hub, path, method="HEAD"))[0] == 200


async def test_the_root_says_that_it_runs_and_needs_no_key(hub: ScriptedHub) -> None:
    async with aiohttp.ClientSession() as stranger:
        for method, text in (("GET", "Ollama is running"), ("HEAD", "")):
            async with stranger.request(method, hub.url) as reply:
                assert reply.status == 200
                assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
                assert await reply.text() == text


ROUTES = [
    ("GET", "/api/version"),
    ("GET", "/api/tags"),
    ("GET", "/api/ps"),
    ("POST", "/api/show"),
    ("POST", "/api/chat"),
    ("POST", "/api/generate"),
    *REFUSED,
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_no_other_route_answers_without_a_key(hub: ScriptedHub, method: str, path: str) -> None:
    url = hub.url + path.replace("{digest}", "sha256:ab")
    async with aiohttp.ClientSession() as stranger, stranger.request(method, url) as reply:
        assert reply.status == 401
        assert reply.headers["WWW-Authenticate"].startswith("Bearer")
        assert method == "HEAD" or isinstance((await reply.json())["error"], str)


@pytest.mark.parametrize(("method", "path"), REFUSED)
async def test_what_only_the_operator_can_do_is_said_with_how(
    hub: ScriptedHub, method: str, path: str
) -> None:
    status, headers, body = await ask(hub, path.replace("{digest}", "sha256:ab"), {"model": "x"}, method)
    assert status in (403, 404, 501)
    assert headers["x-should-retry"] == "false"
    assert method == "HEAD" or body["error"] == REFUSED[method, path].sentence


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/chat"), ("POST", "/api/tags"), ("DELETE", "/api/show"), ("PUT", "/")]
)
async def test_another_method_is_405(hub: ScriptedHub, method: str, path: str) -> None:
    async with RawClient(hub.port, KEY) as client:
        client.head(method, path)
        reply = await client.reply()
    assert reply.status == 405
    assert "allow" in reply.headers
