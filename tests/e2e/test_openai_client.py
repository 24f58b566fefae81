"""The OpenAI client for Python, unmodified, against a hub on TLS with its CA file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import openai
import pytest

from tests.support.hub import Hub

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def tls_hub(smollm2: Path) -> Iterator[Hub]:
    with Hub(tls=True) as running:
        running.add(smollm2, aliases=["my/alias:latest"])
        running.load()
        yield running


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
        models = api.models.list().data
        assert [model.id for model in models] == ["tiny"]
        assert models[0].owned_by == "relay"
        extra = models[0].model_extra or {}
        assert extra["state"] == "warm"
        assert extra["fits"] is True
        assert extra["placement"] == "host"
        assert extra["context_length"] == 1024
        assert api.models.retrieve("my/alias:latest").id == "tiny"
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
