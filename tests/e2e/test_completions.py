"""Bare prompts through the real engine, asked by OpenAI's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx2 as httpx
import openai
import pytest

from tests.support.gguf_builder import with_numbers
from tests.support.hub import Hub

pytestmark = pytest.mark.engine

SKY: dict[str, Any] = {"prompt": "The sky is", "temperature": 0, "max_tokens": 6}


@pytest.fixture
def api(hub: Hub) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{hub.url}/v1",
        api_key=hub.key,
        max_retries=0,
        http_client=httpx.Client(trust_env=False),
    ) as client:
        yield client


async def post(hub: Hub, **fields: Any) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(headers=hub.headers()) as session,
        session.post(f"{hub.url}/v1/completions", json=fields) as reply,
    ):
        text = await reply.text()
        return reply.status, text if "stream" in reply.headers["content-type"] else json.loads(text)


def test_whole_and_streamed_are_the_same(api: openai.OpenAI) -> None:
    whole = api.completions.create(model="tiny", **SKY)
    chunks = list(
        api.completions.create(model="tiny", stream=True, stream_options={"include_usage": True}, **SKY)
    )
    (choice,) = whole.choices
    assert choice.text
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == choice.text
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    assert chunks[-2].choices[0].finish_reason == choice.finish_reason == "length"
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens) == (3, 6, 9)
    assert whole.object == chunks[0].object == "text_completion"
    assert whole.id.startswith("cmpl-")
    assert whole.model == "tiny"


def test_without_a_limit_it_goes_on_to_its_end(api: openai.OpenAI) -> None:
    whole = api.completions.create(
        model="tiny", prompt="Count: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,", temperature=0, stop=["20"]
    )
    assert whole.usage is not None
    assert whole.usage.completion_tokens > 16
    assert whole.choices[0].finish_reason == "stop"
    assert "19" in whole.choices[0].text
    assert "20" not in whole.choices[0].text


def test_prompts_and_choices_in_their_order(api: openai.OpenAI) -> None:
    prompts = ["The sky is", "Cats eat", "One plus one is"]
    alone = [
        api.completions.create(model="tiny", prompt=each, temperature=0, max_tokens=4).choices[0].text
        for each in prompts
    ]
    both = api.completions.create(model="tiny", prompt=prompts, temperature=0, max_tokens=4, n=2)
    assert [choice.index for choice in both.choices] == list(range(6))
    # Sampled from one distribution, at temperature 0 the two of a prompt are alike.
    assert [choice.text for choice in both.choices] == [text for text in alone for _ in range(2)]
    assert both.usage is not None
    assert both.usage.completion_tokens == 24
    assert both.usage.prompt_tokens == 3 + 2 + 4


def test_token_ids_are_the_models_own(api: openai.OpenAI) -> None:
    text = api.completions.create(model="tiny", **SKY)
    ids = api.completions.create(model="tiny", **{**SKY, "prompt": [504, 6376, 314]})
    lists = api.completions.create(model="tiny", **{**SKY, "prompt": [[504, 6376, 314], [504]]})
    assert ids.choices[0].text == lists.choices[0].text == text.choices[0].text
    assert ids.usage is not None and text.usage is not None
    assert ids.usage.prompt_tokens == text.usage.prompt_tokens == 3
    with pytest.raises(openai.BadRequestError) as caught:
        api.completions.create(model="tiny", prompt=[[1], [504, 49152]])
    assert caught.value.param == "prompt[1]"
    assert "49152" in caught.value.message


def test_logprobs_and_echo(api: openai.OpenAI) -> None:
    (choice,) = api.completions.create(model="tiny", logprobs=2, **SKY).choices
    found = choice.logprobs
    assert found is not None
    assert found.tokens and found.text_offset and found.top_logprobs and found.token_logprobs
    assert "".join(found.tokens) == choice.text
    assert [
        choice.text[at:][: len(token)] for at, token in zip(found.text_offset, found.tokens, strict=True)
    ] == (found.tokens)
    for token, logprob, tops in zip(found.tokens, found.token_logprobs, found.top_logprobs, strict=True):
        assert logprob <= 0
        assert len(tops) in (2, 3)
        assert tops[token] == logprob == max(tops.values())  # temperature 0
    chunks = list(api.completions.create(model="tiny", logprobs=2, stream=True, **SKY))
    offsets = [at for chunk in chunks if (said := chunk.choices[0].logprobs) for at in said.text_offset or ()]
    assert offsets == found.text_offset
    (echoed,) = api.completions.create(model="tiny", echo=True, **SKY).choices
    assert echoed.text == SKY["prompt"] + choice.text
    stream = api.completions.create(model="tiny", echo=True, stream=True, **SKY)
    assert "".join(chunk.choices[0].text for chunk in stream) == echoed.text


def test_a_seed_repeats_an_answer(api: openai.OpenAI) -> None:
    def texts(seed: int) -> list[str]:
        made = api.completions.create(
            model="tiny", prompt="Once upon a time", temperature=1.5, max_tokens=12, n=2, seed=seed
        )
        return [choice.text for choice in made.choices]

    first = texts(7)
    assert texts(7) == first
    assert first[0] != first[1]
    assert texts(8)[0] == first[1]  # the second choice's seed is one more


async def test_what_is_too_long_names_the_prompt(hub: Hub) -> None:
    for stream in (False, True):
        status, body = await post(hub, prompt="word " * 3000, stream=stream)
        assert (status, body["error"]["code"], body["error"]["param"]) == (
            400,
            "context_length_exceeded",
            "prompt",
        )
        assert "maximum context length is 1024 tokens, but the prompt has 3001" in body["error"]["message"]


async def test_an_empty_prompt_is_an_empty_answer(hub: Hub) -> None:
    """This model has no token that begins a text."""
    status, body = await post(hub, prompt="", max_tokens=5)
    assert status == 200
    assert body["choices"][0]["text"] == ""
    assert body["usage"]["total_tokens"] == 0


async def test_no_path_in_any_answer(hub: Hub) -> None:
    for fields in ({**SKY}, {**SKY, "stream": True, "logprobs": 1}, {"prompt": "word " * 3000}, {}):
        _, body = await post(hub, **fields)
        text = body if isinstance(body, str) else json.dumps(body)
        assert ".gguf" not in text and ".sock" not in text and "SmolLM" not in text


@pytest.mark.long
async def test_a_gap_is_filled_with_the_models_own_tokens(hub: Hub, smollm2: Path, tmp_path: Path) -> None:
    status, body = await post(hub, prompt="def add(a, b):\n    return ", suffix="\n")
    assert (status, body["error"]["param"], body["error"]["code"]) == (400, "suffix", "unsupported")
    names = {f"tokenizer.ggml.fim_{name}_token_id": 7 + n for n, name in enumerate(("pre", "suf", "mid"))}
    coder = tmp_path / "coder.gguf"
    coder.write_bytes(with_numbers(smollm2.read_bytes(), names))
    hub.add(coder, "coder", slots=1)
    asked: dict[str, Any] = {"model": "coder", "max_tokens": 4, "temperature": 0}
    status, body = await post(hub, prompt="def add(a, b):", suffix="\n", **asked)
    assert status == 200
    by_hand, plain = [
        (await post(hub, prompt=prompt, **asked))[1]
        for prompt in ("<reponame>def add(a, b):<file_sep>\n<filename>", "def add(a, b):")
    ]
    # Three tokens stand around prefix and suffix, which is one token here.
    assert body["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"] + 4
    assert by_hand["usage"]["completion_tokens"] == 4
    # As much as is wanted stands before the gap: nothing is cut to a batch.
    status, body = await post(hub, prompt="word " * 300, suffix="word " * 300, **asked)
    assert body["usage"]["prompt_tokens"] > 600
    hub.command("remove-model", name="coder")


async def test_leaving_frees_the_slots_of_all_prompts(hub: Hub) -> None:
    endless = {
        "prompt": ["a", "b", "c", "d", "e", "f"],
        "max_tokens": 800,
        "logit_bias": {"2": -100, "0": -100},
    }
    async with (
        aiohttp.ClientSession(headers=hub.headers()) as session,
        session.post(f"{hub.url}/v1/completions", json={**endless, "stream": True}) as reply,
    ):
        for _ in range(10):
            assert await reply.content.readline()

    def free(view: Any) -> bool:
        return view.requests.value.in_flight == () and all(w.busy == 0 for w in view.workers.value.workers)

    hub.wait_for(free, 5)
    requests = hub.view().requests.value
    assert requests is not None
    assert requests.recent[0].state == "cancelled"
    assert (await post(hub, **SKY))[0] == 200
