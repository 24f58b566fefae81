"""The OpenAI client for Python, unmodified, against a hub on TLS with its CA file."""

from __future__ import annotations

from enum import Enum
from typing import Any

import httpx2 as httpx
import openai
import pytest
from pydantic import BaseModel

from tests.clients.rig import SLASHED, ClientRig
from tests.support.hub import Hub

pytestmark = pytest.mark.engine

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}


@pytest.fixture(scope="module")
def tls_hub(rig: ClientRig) -> Hub:
    return rig.hub


def client(hub: Hub, key: str | None = None) -> openai.OpenAI:
    http_client = httpx.Client(verify=hub.tls_context(), trust_env=False)
    return openai.OpenAI(
        base_url=f"{hub.url}/v1", api_key=key or hub.key, http_client=http_client, max_retries=0
    )


def ask(hub: Hub, **fields: object) -> dict[str, object]:
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Name a colour."}],
        "max_tokens": 6,
        "temperature": 0,
        **fields,
    }


def test_lists_models(tls_hub: Hub) -> None:
    with client(tls_hub) as api:
        (tiny,) = [model for model in api.models.list().data if model.id == "tiny"]
        assert tiny.owned_by == "relay"
        extra = tiny.model_extra or {}
        assert extra["state"] == "warm"
        assert extra["fits"] is True
        assert extra["placement"] == "host"
        assert extra["context_length"] == 1024
        assert api.models.retrieve(SLASHED).id == "tiny"
        with pytest.raises(openai.NotFoundError):
            api.models.retrieve("nobody")


def test_chats_and_streams_the_same_text(tls_hub: Hub) -> None:
    with client(tls_hub) as api:
        whole = api.chat.completions.create(**ask(tls_hub))  # type: ignore[call-overload]
        stream = api.chat.completions.create(**ask(tls_hub, stream=True))  # type: ignore[call-overload]
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert text
    assert whole.usage.completion_tokens == 6
    assert whole.model == "tiny"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert all(chunk.usage is None for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == 1


def test_usage_only_where_asked_and_last(tls_hub: Hub) -> None:
    with client(tls_hub) as api:
        stream = api.chat.completions.create(
            **ask(tls_hub, stream=True, stream_options={"include_usage": True})  # type: ignore[call-overload]
        )
        chunks = list(stream)
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == chunks[-1].usage.prompt_tokens + 6


def test_a_wrong_key_is_401(tls_hub: Hub) -> None:
    with client(tls_hub, key="wrong") as api, pytest.raises(openai.AuthenticationError) as caught:
        api.models.list()
    assert caught.value.code == "invalid_api_key"


def test_plain_http_on_the_port_gets_a_hint(tls_hub: Hub) -> None:
    reply = httpx.get(f"http://127.0.0.1:{tls_hub.port}/v1/models", trust_env=False)
    assert reply.status_code == 400
    assert "https://" in reply.text
    assert "ca.pem" in reply.text


def scripted(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], **fields}


def test_the_stream_helper_follows_two_calls(tls_hub: Hub) -> None:
    asked = scripted("[two-calls]", tools=[WEATHER], stream_options={"include_usage": True})
    with client(tls_hub) as api, api.chat.completions.stream(**asked) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert [(each.index, each.name, each.arguments) for each in done] == [
        (0, "weather", '{"town":"Oslo"}'),
        (1, "weather", '{"town":"Rome"}'),
    ]
    (choice,) = final.choices
    assert choice.finish_reason == "tool_calls"
    calls = choice.message.tool_calls or []
    assert [(call.id, call.function.name) for call in calls] == [("call_a", "weather"), ("call_b", "weather")]
    assert final.usage is not None
    assert final.usage.total_tokens == 14


def test_the_stream_helper_joins_text(tls_hub: Hub) -> None:
    with client(tls_hub) as api, api.chat.completions.stream(**scripted("[comments]")) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert [piece for piece in pieces if piece] == ["Hello", " there"]
    assert final.choices[0].message.content == "Hello there"
    assert final.choices[0].finish_reason == "stop"


def test_silence_is_filled_with_nothing_that_a_parser_sees(tls_hub: Hub) -> None:
    with client(tls_hub) as api, api.chat.completions.stream(**scripted("[slow]")) as stream:
        assert stream.get_final_completion().choices[0].message.content == "so late"


@pytest.mark.parametrize("scenario", ["breaks", "fails"])
def test_what_fails_behind_the_headers_is_raised(tls_hub: Hub, scenario: str) -> None:
    seen: list[str] = []
    with client(tls_hub) as api:
        stream: Any = api.chat.completions.create(**scripted(f"[{scenario}]"), stream=True)
        with pytest.raises(openai.APIError) as caught:
            seen.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert "".join(seen) == "Hello"
    assert caught.value.code == "engine_failed"


class Shade(Enum):
    RED = "red"
    BLUE = "blue"


class Answer(BaseModel):
    colour: Shade
    other: Shade


def test_parse_gives_an_object_of_the_schemas_class(tls_hub: Hub) -> None:
    with client(tls_hub) as api:
        asked: Any = ask(tls_hub, max_tokens=60)
        answer = api.chat.completions.parse(**asked, response_format=Answer)
    assert isinstance(answer.choices[0].message.parsed, Answer)


def test_a_refusal_that_stands_is_asked_for_once(tls_hub: Hub) -> None:
    """With the client's own retries on (report B24)."""
    asked: list[httpx.Request] = []
    hooks: Any = {"request": [asked.append]}
    http_client = httpx.Client(verify=tls_hub.tls_context(), trust_env=False, event_hooks=hooks)
    with openai.OpenAI(base_url=f"{tls_hub.url}/v1", api_key=tls_hub.key, http_client=http_client) as api:
        with pytest.raises(openai.InternalServerError) as caught:
            api.chat.completions.create(**{**scripted("x"), "model": "big"})
        assert caught.value.code == "model_unavailable"
        assert caught.value.request_id is not None
        assert len(asked) == 1


def test_vectors_are_the_same_packed_and_plain(tls_hub: Hub) -> None:
    with client(tls_hub) as api:
        packed = api.embeddings.create(model="tiny", input=["red", "blue"])
        plain = api.embeddings.create(model="tiny", input=["red", "blue"], encoding_format="float")
    assert [each.index for each in packed.data] == [0, 1]
    for one, other in zip(packed.data, plain.data, strict=True):
        assert len(one.embedding) == 576
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
    assert packed.usage == plain.usage


def test_a_bare_prompt_whole_and_streamed(tls_hub: Hub) -> None:
    asked: Any = {"model": "tiny", "prompt": "One, two,", "max_tokens": 6, "temperature": 0}
    with client(tls_hub) as api:
        whole = api.completions.create(**asked)
        chunks = list(api.completions.create(**asked, stream=True))
    assert whole.choices[0].text
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == whole.choices[0].text
    assert all(chunk.usage is None for chunk in chunks)
