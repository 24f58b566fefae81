"""Vectors through the real engine: what they are, and what goes on beside them."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import httpx2 as httpx
import openai
import pytest
import tiktoken
from langchain_openai import OpenAIEmbeddings

from relaydesk.core.pool.gguf import read_header
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.need import estimate
from relaydesk.core.pool.setup import EngineSetup, embedder_spec
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.infer.client import EngineClient
from relaydesk.engine.infer.spec import EngineSpec
from relaydesk.engine.infer.worker import WorkerProcess
from tests.support.gguf_builder import with_numbers
from tests.support.hub import Hub, chat_body
from tests.support.tiny_encoder import WIDTH, encoder

pytestmark = pytest.mark.engine

PROSE = (
    "The harbour was built in the spring of a dry year, when the river stood so low that carts could cross "
    "it. Fishermen came first, then a cooper, then a woman who sold rope and knew the tides by heart. "
) * 6


@pytest.fixture
async def session(hub: Hub) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers=hub.headers()) as opened:
        yield opened


@pytest.fixture
def api(hub: Hub) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{hub.url}/v1",
        api_key=hub.key,
        max_retries=0,
        http_client=httpx.Client(trust_env=False),
    ) as client:
        yield client


async def ask(hub: Hub, session: aiohttp.ClientSession, **fields: Any) -> tuple[int, Any]:
    async with session.post(f"{hub.url}/v1/embeddings", json=fields) as reply:
        return reply.status, await reply.json()


async def vectors(hub: Hub, session: aiohttp.ClientSession, *texts: str) -> list[list[float]]:
    status, body = await ask(hub, session, input=list(texts))
    assert status == 200, body
    return [each["embedding"] for each in body["data"]]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def test_openais_client_gets_the_same_by_either_encoding(api: openai.OpenAI) -> None:
    packed = api.embeddings.create(model="tiny", input=["red", "a blue house"])  # asks for base64
    plain = api.embeddings.create(model="tiny", input=["red", "a blue house"], encoding_format="float")
    for one, other in zip(packed.data, plain.data, strict=True):
        assert one.index == other.index
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
        assert math.hypot(*other.embedding) == pytest.approx(1, abs=1e-5)
    assert packed.usage == plain.usage
    assert packed.usage.prompt_tokens == packed.usage.total_tokens == 4


async def test_base64_is_little_endian_float32(hub: Hub, session: aiohttp.ClientSession) -> None:
    _, body = await ask(hub, session, input="red", encoding_format="base64")
    text = body["data"][0]["embedding"]
    assert (
        list(struct.unpack("<576f", base64.b64decode(text, validate=True)))
        == (await vectors(hub, session, "red"))[0]
    )


async def test_a_text_has_one_vector_whatever_goes_on_beside_it(
    hub: Hub, session: aiohttp.ClientSession
) -> None:
    (alone,) = await vectors(hub, session, "The quick brown fox jumps over the lazy dog")
    texts = ["The quick brown fox jumps over the lazy dog", "Other", "A third text, longer than both"]
    asked = [asyncio.create_task(vectors(hub, session, *texts[n:], *texts[:n])) for n in range(3)]
    async with session.post(f"{hub.url}/v1/chat/completions", json=chat_body(max_tokens=40)) as reply:
        assert reply.status == 200
    for number, task in enumerate(asked):
        assert (await task)[-number % 3] == alone
    near, far = await vectors(
        hub, session, "The quick brown fox jumps over a lazy dog", "Quarterly tax forms"
    )
    assert cosine(alone, near) > cosine(alone, far)


async def test_nobody_waits_for_a_chat_to_end(hub: Hub, session: aiohttp.ClientSession) -> None:
    body = chat_body("Tell a very long story.", max_tokens=700, stream=True, logit_bias={"2": -100})
    async with session.post(f"{hub.url}/v1/chat/completions", json=body) as reply:
        assert await reply.content.readline()
        await vectors(hub, session, "red")
        requests = hub.view().requests.value
        assert requests is not None
        assert [each.state for each in requests.in_flight] == ["generating"]


@pytest.mark.long
async def test_a_text_of_many_pieces(hub: Hub, session: aiohttp.ClientSession, smollm2: Path) -> None:
    text = PROSE[:800]
    (found,) = await vectors(hub, session, text)
    assert math.hypot(*found) == pytest.approx(1, abs=1e-5)
    assert found == (await vectors(hub, session, text))[0]
    # An engine that reads the whole text at once says nearly the same of it.
    spec = EngineSpec(
        model_path=str(smollm2), alias="m", ctx_total=512, slots=1, threads=1, setup=EngineSetup(512, "mean")
    )
    worker = WorkerProcess(spec, hub.dir / "w", SystemRng(), SystemClock())
    await worker.start(30)
    client = EngineClient(worker.socket_path, worker.key, SystemClock())
    reply = await client.json("POST", "/v1/embeddings", json.dumps({"input": text}).encode())
    whole = json.loads(reply.body)
    await client.aclose()
    await worker.stop()
    assert 150 < whole["usage"]["prompt_tokens"] < 512
    assert cosine(found, whole["data"][0]["embedding"]) > 0.98


@pytest.mark.long
async def test_a_chunk_of_more_than_512_tokens_and_one_that_is_too_long(
    hub: Hub, session: aiohttp.ClientSession
) -> None:
    status, body = await ask(hub, session, input="word " * 540)
    assert status == 200
    assert body["usage"]["prompt_tokens"] == 541
    for given, param in (("word " * 1100, "input"), (["short", "word " * 1100], "input[1]")):
        status, body = await ask(hub, session, input=given)
        error = body["error"]
        assert (status, error["code"], error["param"]) == (400, "context_length_exceeded", param)
        assert "maximum context length is 1024 tokens" in error["message"]
        assert "1101" in error["message"]


async def test_what_is_embedded_is_in_nobodys_prompt_cache(hub: Hub, session: aiohttp.ClientSession) -> None:
    secret = "My dear friend, the treasure lies under the seventh step of the old mill, on the left."

    async def cached(prompt: str) -> int:
        body = {"prompt": prompt, "max_tokens": 1}
        async with session.post(f"{hub.url}/v1/completions", json=body) as reply:
            return int((await reply.json())["usage"]["prompt_tokens_details"]["cached_tokens"])

    await vectors(hub, session, secret)
    assert await cached(secret) == 0
    assert await cached(secret) > 10


async def test_leaving_a_long_text_stops_the_engine_soon(hub: Hub, session: aiohttp.ClientSession) -> None:
    await vectors(hub, session, "red")
    worker = next(each for each in hub.status()["workers"] if each["model"] == "tiny (embeddings)")
    engine = next(each for each in hub.engines() if each.pid == worker["pid"])
    asking = asyncio.create_task(ask(hub, session, input=["word " * 900] * 20))

    def begun(view: Any) -> bool:
        return any(each.prompt_done > 0 for each in view.requests.value.in_flight)

    await asyncio.to_thread(hub.wait_for, begun, 30)
    asking.cancel()
    await asyncio.wait([asking])
    spent = sum(engine.cpu_times()[:2])
    await asyncio.to_thread(hub.wait_for, lambda view: view.requests.value.in_flight == (), 5)
    for _ in range(40):
        before = sum(engine.cpu_times()[:2])
        await asyncio.sleep(0.25)
        if sum(engine.cpu_times()[:2]) - before < 0.05:
            break
    # Of its own time: on a busy machine the wall clock counts other programs too.
    assert sum(engine.cpu_times()[:2]) - spent < 2.0
    requests = hub.view().requests.value
    assert requests is not None
    assert (requests.recent[0].state, requests.recent[0].status) == ("cancelled", 499)
    assert 0 < requests.recent[0].prompt_done < 18_000


@pytest.mark.long
async def test_what_an_embedder_needs_is_what_it_takes(
    hub: Hub, session: aiohttp.ClientSession, smollm2: Path
) -> None:
    await vectors(hub, session, "word " * 130)
    worker = next(each for each in hub.status()["workers"] if each["model"] == "tiny (embeddings)")
    engine = next(each for each in hub.engines() if each.pid == worker["pid"])
    taken = engine.memory_info().rss / (1 << 20)
    spec = embedder_spec(ModelSpec(name="tiny", path=str(smollm2), ctx=1024))
    need = estimate(read_header(smollm2.read_bytes()), spec, embedder=True).mib
    # The weights are in both, though the engine that writes maps the same ones.
    assert need * 0.7 < taken < need


@pytest.mark.long
async def test_models_made_to_embed_do_it_as_their_files_say(
    hub: Hub, session: aiohttp.ClientSession, smollm2: Path, tmp_path: Path
) -> None:
    for name, file in (
        ("mean", encoder(pooling=1)),
        ("first", encoder(pooling=2)),
        ("last", with_numbers(smollm2.read_bytes(), {"llama.pooling_type": 3})),
    ):
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(file)
        hub.add(path, name, ctx=0)
    found = {}
    for name in ("mean", "first"):
        status, body = await ask(hub, session, model=name, input="a b " * 200)
        assert status == 200, body
        # As a whole, with what begins and what ends a text.
        assert body["usage"]["prompt_tokens"] == 402
        found[name] = body["data"][0]["embedding"]
        assert (len(found[name]), math.hypot(*found[name])) == (WIDTH, pytest.approx(1, abs=1e-5))
        status, body = await ask(hub, session, model=name, input="a b " * 300)
        assert (status, body["error"]["code"]) == (400, "context_length_exceeded")
        assert "maximum context length is 512 tokens, but input has 602 tokens" in body["error"]["message"]
    assert found["mean"] != found["first"]
    async with session.post(
        f"{hub.url}/api/embed", json={"model": "mean", "input": "a b " * 300}
    ) as reply:  # Ollama's dialect cuts
        assert (await reply.json())["prompt_eval_count"] == 512
    # The last token's state only, in as many batches as it takes.
    status, body = await ask(hub, session, model="last", input=PROSE[:1000])
    assert (status, len(body["data"][0]["embedding"])) == (200, 576)
    async with session.post(f"{hub.url}/v1/chat/completions", json=chat_body(model="mean")) as reply:
        error = (await reply.json())["error"]
        assert (reply.status, error["code"], error["param"]) == (400, "unsupported", "model")
    workers = {each["model"] for each in hub.status()["workers"]}
    assert {"mean", "first", "last"} <= workers
    for name in ("mean", "first", "last"):
        hub.command("remove-model", name=name)


def langchain(hub: Hub, **fields: Any) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(
        base_url=f"{hub.url}/v1",
        api_key=hub.key,
        model="tiny",
        max_retries=0,
        check_embedding_ctx_length=True,
    ).model_copy(update=fields)


def test_langchains_token_ids_are_refused_in_words_that_help(
    hub: Hub, api: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    # The real encodings are fetched from far; ids of any tokenizer but the model's own are as wrong.
    bytewise = tiktoken.Encoding(
        "bytewise",
        pat_str=r".",
        mergeable_ranks={bytes([each]): each for each in range(256)},
        special_tokens={},
    )
    monkeypatch.setattr(tiktoken, "encoding_for_model", lambda _name: bytewise)
    with pytest.raises(openai.BadRequestError) as caught:
        langchain(hub).embed_query("red")
    assert "check_embedding_ctx_length=False" in caught.value.message
    assert (caught.value.code, caught.value.param) == ("invalid_request", "input[0]")
    asked = langchain(hub, check_embedding_ctx_length=False).embed_documents(["red", "a blue house"])
    theirs = api.embeddings.create(model="tiny", input=["red", "a blue house"], encoding_format="float")
    assert asked == [pytest.approx(each.embedding, abs=1e-6) for each in theirs.data]
