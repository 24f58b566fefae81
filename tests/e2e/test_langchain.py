"""LangChain, unmodified, against a hub on TLS whose CA it learns from ``SSL_CERT_FILE``."""

from __future__ import annotations

from typing import Any, Literal

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from tests.clients.rig import ClientRig

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def _trust(rig: ClientRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CA as every Python program takes it (report B34)."""
    monkeypatch.setenv("SSL_CERT_FILE", str(rig.hub.ca))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@tool
def weather(town: str) -> str:
    """The weather in a town."""
    return f"sun in {town}"


def chat_model(rig: ClientRig, model: str, **fields: Any) -> ChatOpenAI:
    return ChatOpenAI(
        base_url=f"{rig.hub.url}/v1", api_key=rig.hub.key, model=model, max_retries=0, temperature=0, **fields
    )


def test_a_chat_whole_and_streamed(rig: ClientRig) -> None:
    model = chat_model(rig, "tiny", max_tokens=8)
    whole = model.invoke("Name a colour.")
    chunks = list(model.stream("Name a colour.", stream_usage=True))
    joined = chunks[0]
    for chunk in chunks[1:]:
        joined = joined + chunk
    assert whole.text
    assert joined.text == whole.text
    assert whole.usage_metadata is not None and joined.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == joined.usage_metadata["output_tokens"] == 8
    assert whole.usage_metadata["input_tokens"] == joined.usage_metadata["input_tokens"]
    assert whole.response_metadata["finish_reason"] == joined.response_metadata["finish_reason"] == "length"


async def test_a_chat_in_a_loop(rig: ClientRig) -> None:
    model = chat_model(rig, "scripted")
    assert (await model.ainvoke("x")).text == "Hello there"
    assert "".join([chunk.text async for chunk in model.astream("[comments]")]) == "Hello there"


def test_tools_there_and_back(rig: ClientRig) -> None:
    model = chat_model(rig, "scripted").bind_tools([weather])
    question = HumanMessage("[two-calls]")
    asked = model.invoke([question])
    assert isinstance(asked, AIMessage)
    wanted = [("call_a", {"town": "Oslo"}), ("call_b", {"town": "Rome"})]
    assert [(call["id"], call["args"]) for call in asked.tool_calls] == wanted
    assert asked.invalid_tool_calls == []
    assert asked.response_metadata["finish_reason"] == "tool_calls"
    joined: Any = None
    for chunk in model.stream([question]):
        joined = chunk if joined is None else joined + chunk
    assert isinstance(joined, AIMessageChunk)
    assert [(call["id"], call["args"]) for call in joined.tool_calls] == wanted
    results = [weather.invoke(call) for call in asked.tool_calls]
    assert all(isinstance(result, ToolMessage) for result in results)
    answer = model.invoke([question, asked, *results])
    assert answer.text == "Results: sun in Oslo, sun in Rome"


def test_what_fails_behind_the_headers_is_raised(rig: ClientRig) -> None:
    seen: list[str] = []
    stream = chat_model(rig, "scripted").stream("[fails]")
    with pytest.raises(openai.APIError, match="out of memory"):
        seen.extend(chunk.text for chunk in stream)
    assert "".join(seen) == "Hello"


def test_an_overflow_is_recognised(rig: ClientRig) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat_model(rig, "tiny").invoke("word " * 3000)
    assert caught.value.code == "context_length_exceeded"


def embeddings(rig: ClientRig, **fields: Any) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(
        base_url=f"{rig.hub.url}/v1", api_key=rig.hub.key, model="tiny", max_retries=0, **fields
    )


def test_vectors_of_text(rig: ClientRig) -> None:
    model = embeddings(rig, check_embedding_ctx_length=False)
    documents = model.embed_documents(["red", "blue"])
    assert [len(vector) for vector in documents] == [576, 576]
    assert model.embed_query("red") == pytest.approx(documents[0], abs=1e-3)


def test_a_bare_prompt(rig: ClientRig) -> None:
    model = OpenAI(
        base_url=f"{rig.hub.url}/v1", api_key=rig.hub.key, model="tiny", max_tokens=8, temperature=0
    )
    text = model.invoke("The colours of the rainbow are")
    assert text
    assert "".join(model.stream("The colours of the rainbow are")) == text


class Colour(BaseModel):
    colour: Literal["red", "blue"]


def test_structured_output_is_an_object(rig: ClientRig) -> None:
    model = chat_model(rig, "tiny", max_tokens=60).with_structured_output(Colour, method="json_schema")
    answer = model.invoke("Name a colour. Answer with one word.")
    assert isinstance(answer, Colour)
