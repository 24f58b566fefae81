"""Ollama's own clients for Node and Python, and LangChain's, unmodified, against a hub on TLS."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import ollama
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings
from pydantic import BaseModel

from tests.clients import node_project
from tests.clients.rig import ClientRig

pytestmark = pytest.mark.engine

TEXT = "Grüße 😊漢字\u2028\0"
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


@pytest.fixture(scope="module")
def js(rig: ClientRig, node_clients: Path) -> dict[str, Any]:
    return node_project.run(node_clients, "ollama.mjs", rig.environment)


@pytest.fixture(scope="module")
def client(rig: ClientRig) -> Iterator[ollama.Client]:
    """The key as the client takes it from its own environment variable: for any host."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLLAMA_API_KEY", rig.hub.key)
        made = ollama.Client(host=rig.hub.url, verify=rig.hub.tls_context(), trust_env=False)
    with made:
        yield made


def test_js_lists_models(js: dict[str, Any]) -> None:
    assert tuple(map(int, js["version"]["version"].split("."))) >= (0, 6, 4)
    listed = {model["name"]: model for model in js["list"]}
    assert {"tiny:latest", "scripted:latest"} <= set(listed)
    for model in listed.values():
        assert model["model"] == model["name"]
        assert len(model["digest"]) == 64
        assert datetime.fromisoformat(model["modified_at"]).tzinfo is not None
        # Pickers drop the whole list where one of these is missing (clients.md §1.3).
        for field in ("format", "family", "parameter_size", "quantization_level"):
            assert isinstance(model["details"][field], str)
    assert listed["tiny:latest"]["size"] > 90_000_000
    assert listed["tiny:latest"]["details"]["family"] == "llama"
    loaded = {model["name"]: model for model in js["ps"]}["tiny:latest"]
    assert datetime.fromisoformat(loaded["expires_at"]).year <= 9999
    assert loaded["context_length"] == 1024


def test_js_shows_a_model(js: dict[str, Any]) -> None:
    shown = js["show"]
    assert shown["model_info"]["general.architecture"] == "llama"
    assert shown["model_info"]["llama.context_length"] > 0
    assert "completion" in shown["capabilities"]
    assert "num_ctx 1024" in shown["parameters"]
    assert shown["details"]["quantization_level"] == "Q4_1"


@pytest.mark.parametrize(("whole", "streamed"), [("chat", "stream"), ("generate", "generateStream")])
def test_js_streams_what_it_is_told_whole(js: dict[str, Any], whole: str, streamed: str) -> None:
    one, lines = js[whole], js[streamed]
    text = one["message"]["content"] if whole == "chat" else one["response"]
    assert text
    assert lines["text"] == text
    assert (lines["failed"], lines["done"]) == (None, 1)
    for last in (one, lines["last"]):
        assert (last["done"], last["done_reason"], last["eval_count"]) == (True, "length", 8)
        assert last["prompt_eval_count"] == one["prompt_eval_count"] > 0
        assert all(isinstance(last[name], int) and last[name] >= 0 for name in DURATIONS)
        assert last["total_duration"] > 0
        assert datetime.fromisoformat(last["created_at"]).tzinfo is not None
    # Whoever tests for the presence of these takes an answer for an error, or for another kind of reply.
    assert not {"error", "type"} & set(lines["keys"])


def test_js_reads_text_whatever_is_between_it(js: dict[str, Any]) -> None:
    expected = {"unicode": TEXT, "comments": "Hello there", "slow": "so late"}
    assert {step: js[step]["text"] for step in expected} == expected
    for step in expected:
        assert (js[step]["failed"], js[step]["last"]["done_reason"]) == (None, "stop")


@pytest.mark.parametrize("step", ["breaks", "fails"])
def test_js_throws_what_fails_behind_the_headers(js: dict[str, Any], step: str) -> None:
    seen = js[step]
    assert (seen["text"], seen["done"]) == ("Hello", 0)
    assert seen["failed"]["thrown"] == "Error"
    assert ("out of memory" in seen["failed"]["message"]) == (step == "fails")


def test_js_calls_tools(js: dict[str, Any]) -> None:
    wanted = [("weather", {"town": "Oslo"}), ("weather", {"town": "Rome"})]
    whole = js["calls"]["message"]
    assert [(c["function"]["name"], c["function"]["arguments"]) for c in whole["tool_calls"]] == wanted
    assert whole["content"] == ""
    assert js["calls"]["done_reason"] == "stop"
    assert [(call["name"], call["arguments"]) for call in js["callsStream"]["calls"]] == wanted
    assert js["callsStream"]["last"]["done_reason"] == "stop"
    assert js["round"] == "Results: sun in Oslo, sun in Rome"


def test_js_gets_what_a_schema_allowed(js: dict[str, Any]) -> None:
    assert any(colour in js["format"] for colour in ('"red"', '"blue"'))


def test_js_gets_vectors_by_both_routes(js: dict[str, Any]) -> None:
    assert (js["embed"]["sizes"], js["embed"]["size"]) == ([576, 576], 576)
    # The same direction; the older route does not bring vectors to length 1.
    assert js["embed"]["cosine"] == pytest.approx(1, abs=1e-3)
    assert js["embed"]["tokens"] >= 2


def test_js_loads_and_unloads_without_a_word(js: dict[str, Any]) -> None:
    assert (js["load"]["done"], js["load"]["done_reason"]) == (True, "load")
    assert (js["unload"]["done"], js["unload"]["done_reason"]) == (True, "unload")


def test_js_leaves_a_stream_and_the_hub_stops(js: dict[str, Any], rig: ClientRig) -> None:
    assert js["abort"] == {"count": 4, "name": "AbortError"}
    record = rig.request("ollama-js-abort")
    assert (record.state, record.status) == ("cancelled", 499)
    assert 4 <= record.completion_tokens < 600


@pytest.mark.parametrize(
    ("step", "status", "words"),
    [
        ("unknown", 404, "model 'nobody' not found"),
        ("unknownShow", 404, "model 'nobody' not found"),
        ("wrongKey", 401, "relaydesk token --api"),
        ("wrongType", 400, "options.temperature"),
        ("overflow", 400, "maximum context length is 1024 tokens"),
        ("permanent", 503, "needs about"),
        ("pull", 403, "relaydesk model pull"),
        ("copy", 403, "relaydesk model"),
        ("remove", 403, "relaydesk model rm"),
    ],
)
def test_js_is_told_in_a_sentence(js: dict[str, Any], step: str, status: int, words: str) -> None:
    assert (js[step]["thrown"], js[step]["status"]) == ("ResponseError", status)
    assert words in js[step]["message"]


def test_js_is_told_of_an_overflow_by_status_in_a_stream_too(js: dict[str, Any]) -> None:
    failed = js["overflowStream"]["failed"]
    assert (failed["thrown"], failed["status"]) == ("ResponseError", 400)


def say(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], **fields}


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather in a town",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}


def test_python_reads_every_answer_into_its_classes(client: ollama.Client) -> None:
    listed = {model.model: model for model in client.list().models}
    details = listed["tiny:latest"].details
    assert details is not None
    assert details.family == "llama"
    assert "tiny:latest" in [model.model for model in client.ps().models]
    shown = client.show("tiny")
    assert shown.modelinfo is not None
    assert shown.modelinfo["general.architecture"] == "llama"
    assert "completion" in (shown.capabilities or [])


def test_python_chats(client: ollama.Client) -> None:
    options = {"num_predict": 8, "temperature": 0}
    asked: Any = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Name a colour."}],
        "options": options,
    }
    whole = client.chat(**asked)
    lines = list(client.chat(**asked, stream=True))
    assert whole.message.content
    assert "".join(line.message.content or "" for line in lines) == whole.message.content
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].done_reason == whole.done_reason == "length"
    assert lines[-1].eval_count == whole.eval_count == 8
    made = client.generate("tiny", "Name a colour.", options=options)
    assert made.response == whole.message.content


def test_python_survives_silence_and_is_told_of_failures(client: ollama.Client) -> None:
    assert "".join(x.message.content or "" for x in client.chat(**say("[slow]"), stream=True)) == "so late"
    seen: list[str] = []
    with pytest.raises(ollama.ResponseError, match="out of memory"):
        seen.extend(line.message.content or "" for line in client.chat(**say("[fails]"), stream=True))
    assert "".join(seen) == "Hello"
    with pytest.raises(ollama.ResponseError, match="not found") as caught:
        client.chat("nobody", [{"role": "user", "content": "x"}])
    assert caught.value.status_code == 404


def test_python_calls_tools_there_and_back(client: ollama.Client) -> None:
    asked = client.chat(**say("[two-calls]", tools=[WEATHER]))
    calls = asked.message.tool_calls or []
    assert [call.function.arguments for call in calls] == [{"town": "Oslo"}, {"town": "Rome"}]
    results = [
        {"role": "tool", "tool_name": "weather", "content": f"sun in {call.function.arguments['town']}"}
        for call in calls
    ]
    messages = [{"role": "user", "content": "[two-calls]"}, asked.message, *results]
    answer = client.chat("scripted", messages, tools=[WEATHER])
    assert answer.message.content == "Results: sun in Oslo, sun in Rome"


def test_python_gets_vectors(client: ollama.Client) -> None:
    found = client.embed("tiny", ["red", "blue"])
    assert [len(vector) for vector in found.embeddings] == [576, 576]
    assert found.prompt_eval_count is not None
    assert found.prompt_eval_count >= 2


@tool
def weather(town: str) -> str:
    """The weather in a town."""
    return f"sun in {town}"


class Colour(BaseModel):
    colour: Literal["red", "blue"]


def langchain(rig: ClientRig, model: str, **fields: Any) -> ChatOllama:
    options = {
        "headers": {"Authorization": f"Bearer {rig.hub.key}"},
        "verify": rig.hub.tls_context(),
        "trust_env": False,
    }
    return ChatOllama(base_url=rig.hub.url, model=model, temperature=0, client_kwargs=options, **fields)


def test_langchain_gets_vectors(rig: ClientRig) -> None:
    options = {
        "headers": {"Authorization": f"Bearer {rig.hub.key}"},
        "verify": rig.hub.tls_context(),
        "trust_env": False,
    }
    model = OllamaEmbeddings(base_url=rig.hub.url, model="tiny", client_kwargs=options)
    documents = model.embed_documents(["red", "blue"])
    assert [len(vector) for vector in documents] == [576, 576]
    assert model.embed_query("red") == pytest.approx(documents[0], abs=1e-3)


async def test_langchain_chats(rig: ClientRig) -> None:
    model = langchain(rig, "tiny", num_predict=8)
    whole = model.invoke("Name a colour.")
    joined: Any = None
    for chunk in model.stream("Name a colour."):
        joined = chunk if joined is None else joined + chunk
    assert whole.text
    assert joined.text == whole.text
    assert joined.usage_metadata == whole.usage_metadata
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == 8
    assert whole.response_metadata["done_reason"] == "length"
    assert (await langchain(rig, "scripted").ainvoke("x")).text == "Hello there"


def test_langchain_calls_tools_there_and_back(rig: ClientRig) -> None:
    model = langchain(rig, "scripted").bind_tools([weather])
    question = HumanMessage("[two-calls]")
    asked = model.invoke([question])
    assert [call["args"] for call in asked.tool_calls] == [{"town": "Oslo"}, {"town": "Rome"}]
    results = [weather.invoke(call) for call in asked.tool_calls]
    assert model.invoke([question, asked, *results]).text == "Results: sun in Oslo, sun in Rome"


def test_langchain_gets_an_object(rig: ClientRig) -> None:
    model = langchain(rig, "tiny", num_predict=60).with_structured_output(Colour, method="json_schema")
    assert isinstance(model.invoke("Name a colour."), Colour)
