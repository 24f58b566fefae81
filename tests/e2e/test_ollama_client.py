"""Ollama's dialect over the real model: the same answers as on /v1, and what clients do beside asking."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ollama
import pytest

from tests.support.hub import Hub

pytestmark = pytest.mark.engine

MESSAGES = [
    {"role": "system", "content": "You name things."},
    {"role": "user", "content": "Name a colour and a town."},
]
OPTIONS = {"temperature": 0, "num_predict": 24, "seed": 1}


@pytest.fixture
def client(hub: Hub) -> Iterator[ollama.Client]:
    with ollama.Client(host=hub.url, headers={"Authorization": f"Bearer {hub.key}"}, trust_env=False) as made:
        yield made


def openai(hub: Hub, path: str, **fields: Any) -> Any:
    asked = urllib.request.Request(
        hub.url + path, json.dumps({"model": "tiny", **fields}).encode(), hub.headers()
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=60) as reply:
        text = reply.read().decode()
    if not fields.get("stream"):
        return json.loads(text)
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for each in chunks for choice in each["choices"])


def test_the_same_question_has_the_same_answer_everywhere(hub: Hub, client: ollama.Client) -> None:
    asked: Any = {"model": "tiny", "messages": MESSAGES, "options": OPTIONS}
    whole = client.chat(**asked)
    lines = list(client.chat(**asked, stream=True))
    generate: Any = {"system": MESSAGES[0]["content"], "prompt": MESSAGES[1]["content"], "options": OPTIONS}
    once = client.generate("tiny", **generate)
    parts = list(client.generate("tiny", **generate, stream=True))
    v1 = {"messages": MESSAGES, "temperature": 0, "max_tokens": 24, "seed": 1}
    theirs = openai(hub, "/v1/chat/completions", **v1)
    text = theirs["choices"][0]["message"]["content"]
    assert len(text) > 10
    assert {
        whole.message.content,
        "".join(line.message.content or "" for line in lines),
        once.response,
        "".join(part.response or "" for part in parts),
        openai(hub, "/v1/chat/completions", **v1, stream=True),
    } == {text}
    counts = {(each.prompt_eval_count, each.eval_count) for each in (whole, lines[-1], once, parts[-1])}
    assert counts == {(theirs["usage"]["prompt_tokens"], theirs["usage"]["completion_tokens"])}
    assert whole.done_reason == lines[-1].done_reason == "length"
    # What clients show as tokens a second.
    assert whole.eval_duration is not None
    assert whole.eval_duration > 1_000_000


def test_a_raw_prompt_is_a_completion(hub: Hub, client: ollama.Client) -> None:
    prompt = "The capital of France is"
    raw = client.generate("tiny", prompt, raw=True, options=OPTIONS)
    v1 = openai(hub, "/v1/completions", prompt=prompt, temperature=0, max_tokens=24, seed=1)
    assert raw.response == v1["choices"][0]["text"]
    assert raw.prompt_eval_count == v1["usage"]["prompt_tokens"]
    with pytest.raises(ollama.ResponseError, match="suffix is not supported by this model") as caught:
        client.generate("tiny", "def f(", suffix="): pass")
    assert caught.value.status_code == 400


@pytest.mark.long
def test_samplers_reach_the_engine(client: ollama.Client) -> None:
    def answer(**options: Any) -> str | None:
        asked = {**OPTIONS, "temperature": 1, **options}
        return client.generate("tiny", "Tell me a story.", options=asked).response

    assert answer() == answer()
    assert answer(seed=2) != answer()
    # Of one candidate it is the best one, whatever the temperature.
    assert answer(top_k=1) == answer(top_k=1, seed=2) == answer(temperature=0)
    assert answer(temperature=0, repeat_penalty=2, repeat_last_n=64) != answer(temperature=0)
    assert answer(temperature=0, repeat_penalty=2, repeat_last_n=0) == answer(temperature=0)


def test_stop_format_and_logprobs(client: ollama.Client) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "enum": [7]}}, "required": ["n"]}
    made = client.chat("tiny", MESSAGES, format=schema, options={"temperature": 0, "num_predict": 40})
    assert json.loads(made.message.content or "") == {"n": 7}
    assert made.done_reason == "stop"
    text = client.generate("tiny", "Count: one, two,", options=OPTIONS).response or ""
    stop = text[5:8]
    stopped = client.generate("tiny", "Count: one, two,", options={**OPTIONS, "stop": [stop]})
    assert stopped.response == text[: text.index(stop)]
    assert stopped.done_reason == "stop"
    logged = client.generate(
        "tiny", "Hi", options={**OPTIONS, "num_predict": 3}, logprobs=True, top_logprobs=2
    )
    assert logged.logprobs is not None
    assert "".join(each.token for each in logged.logprobs) == logged.response
    assert [len(each.top_logprobs or ()) for each in logged.logprobs] == [2, 2, 2]


@pytest.mark.long
def test_vectors_are_the_same_on_every_route(hub: Hub, client: ollama.Client) -> None:
    found = client.embed("tiny", ["red", "The sky is blue."])
    theirs = openai(hub, "/v1/embeddings", input=["red", "The sky is blue."])
    assert found.embeddings == [each["embedding"] for each in theirs["data"]]
    assert found.prompt_eval_count == theirs["usage"]["prompt_tokens"]
    assert client.embeddings("tiny", "red").embedding == pytest.approx(found.embeddings[0], abs=1e-5)
    assert client.embed("tiny", "word " * 3000).prompt_eval_count == 1024
    with pytest.raises(ollama.ResponseError, match="maximum context length is 1024") as caught:
        client.embed("tiny", "word " * 3000, truncate=False)
    assert caught.value.status_code == 400


def test_lists_and_pages(client: ollama.Client) -> None:
    (model,) = client.list().models
    assert model.model == "tiny:latest"
    assert model.size == 98_362_432
    assert model.details is not None
    assert (model.details.parameter_size, model.details.quantization_level) == ("134.52M", "Q4_1")
    page = client.show("tiny")
    assert page.modelinfo is not None
    assert page.modelinfo["general.parameter_count"] == 134_515_008
    assert page.modelinfo["llama.context_length"] == 1024
    assert "<|im_start|>" in (page.template or "")
    assert page.capabilities == ["completion"]
    (loaded,) = client.ps().models
    assert loaded.digest == model.digest
    assert loaded.context_length == 1024
    assert (loaded.size or 0) > 98_362_432


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_wrong_is_said_by_status(client: ollama.Client, stream: bool) -> None:
    for fields, status, words in (
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, 400, "maximum context length is 1024"),
        ({"options": {"num_predict": "all"}}, 400, "options.num_predict must be a whole number"),
        ({"think": True}, 400, '"tiny" does not support thinking'),
        ({"model": "nobody"}, 404, "model 'nobody' not found"),
    ):
        with pytest.raises(ollama.ResponseError, match=words) as caught:
            list(client.chat(**{"model": "tiny", "messages": MESSAGES, "stream": stream, **fields}))
        assert caught.value.status_code == status


def test_a_wrong_key_opens_nothing(hub: Hub) -> None:
    with ollama.Client(hub.url, headers={"Authorization": "Bearer wrong"}, trust_env=False) as stranger:
        for call in (
            stranger.list,
            stranger.ps,
            lambda: stranger.show("tiny"),
            lambda: stranger.chat("tiny"),
        ):
            with pytest.raises(ollama.ResponseError) as caught:
                call()
            assert caught.value.status_code == 401


@pytest.mark.long
def test_a_model_is_loaded_kept_and_let_go(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2)
        headers = {"Authorization": f"Bearer {hub.key}"}
        with ollama.Client(hub.url, headers=headers, trust_env=False) as client:
            assert client.ps().models == []
            made = client.generate("tiny", keep_alive="10m")
            assert (made.done_reason, made.response) == ("load", "")
            assert (made.load_duration or 0) > 10_000_000
            (loaded,) = client.ps().models
            assert loaded.expires_at is not None
            assert len(hub.engines()) == 1
            assert client.generate("tiny", keep_alive=0).done_reason == "unload"
            assert client.ps().models == []
            assert hub.engines() == []
            # Cold: the stream begins before the load has ended, and unloads at its end.
            lines = list(client.chat("tiny", MESSAGES, options=OPTIONS, keep_alive=0, stream=True))
            assert lines[-1].done
            assert (lines[-1].load_duration or 0) > 10_000_000
            hub.wait_for(lambda _: hub.engines() == [])
        usage = [(each.route, each.completion_tokens) for each in hub.view().requests.value.recent]
        assert usage == [("/api/chat", 24), ("/api/generate", 0), ("/api/generate", 0)]
