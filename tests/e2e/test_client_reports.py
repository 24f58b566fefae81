"""Client-side bug reports that only a real engine can show (ids: B01 …; the table of all of them is in
``tests/clients/test_reports_held.py``)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import jsonschema
import pytest

from tests.clients.rig import ClientRig
from tests.support.hub import chat_body

pytestmark = pytest.mark.engine


def post(rig: ClientRig, path: str = "/v1/chat/completions", **fields: Any) -> httpx.Response:
    return httpx.post(
        rig.hub.url + path,
        json={"model": "tiny", **fields},
        headers=rig.hub.headers(),
        verify=rig.hub.tls_context(),
        timeout=60,
        trust_env=False,
    )


ASKED = [{"role": "user", "content": "Name a colour."}]


def saying(words: str) -> dict[str, Any]:
    """A request whose answer can only be the JSON text of ``{"a": words}``."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "enum": [words]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    named = {"name": "a", "strict": True, "schema": schema}
    return chat_body(max_tokens=100, response_format={"type": "json_schema", "json_schema": named})


def streamed(rig: ClientRig, body: dict[str, Any]) -> tuple[list[str], str]:
    """The texts of a stream's pieces, and its finish reason."""
    reply = post(rig, **body, stream=True)
    assert reply.status_code == 200
    lines = [line for line in reply.content.decode().split("\n") if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line[6:])["choices"]]
    texts = [choice["delta"].get("content") or "" for choice in choices]
    return texts, choices[-1]["finish_reason"]


def whole(rig: ClientRig, body: dict[str, Any]) -> tuple[str, str]:
    choice = post(rig, **body).json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


@pytest.mark.long
def test_b07_an_answer_that_fills_the_context_ends_with_length(rig: ClientRig) -> None:
    """It merely might not fit: that is no reason to refuse it."""
    body = chat_body("word " * 190, model="small", max_tokens=200, logit_bias={"2": -100})
    answer = post(rig, **body).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    usage = answer["usage"]
    assert 0 < usage["completion_tokens"] < 60
    assert usage["prompt_tokens"] + usage["completion_tokens"] <= 256 + 1


def test_b08_characters_of_several_tokens_come_whole(rig: ClientRig) -> None:
    words = "😊漢字ü𝔘👩‍👩‍👧"
    texts, finish = streamed(rig, saying(words))
    assert finish == "stop"
    assert json.loads("".join(texts)) == {"a": words}
    assert not any("\ufffd" in text for text in texts)
    # It was many pieces, so that there was something to break.
    assert sum(bool(text) for text in texts) > len(words) // 2


@pytest.mark.parametrize(
    ("words", "stop", "before"),
    [
        ("alpha beta gamma delta", ["beta gamma"], "alpha "),
        ("alpha beta gamma delta", "beta gamma", "alpha "),
        ("Mars? Venus", ["zzz", " Venus"], "Mars?"),
        ("alpha beta gamble delta", ["beta gamma"], None),
        ("alpha beta gamma delta", [], None),
    ],
)
def test_b12_the_text_before_a_stop_text_and_a_near_miss(
    rig: ClientRig, words: str, stop: Any, before: str | None
) -> None:
    """``before`` is None where nothing stops it."""
    body = {**saying(words), "stop": stop}
    text, finish = whole(rig, body)
    assert finish == "stop"
    if before is None:
        assert json.loads(text) == {"a": words}
    else:
        assert text.endswith(f'"{before}')
    texts, streamed_finish = streamed(rig, body)
    assert ("".join(texts), streamed_finish) == (text, finish)


@pytest.mark.parametrize(
    ("path", "body", "stop", "text_of"),
    [
        ("/api/chat", {"messages": ASKED}, "options.stop", lambda answer: answer["message"]["content"]),
        ("/api/generate", {"prompt": "Name a colour."}, "options.stop", lambda answer: answer["response"]),
        ("/v1/completions", {"prompt": "One, two,"}, "stop", lambda answer: answer["choices"][0]["text"]),
        (
            "/v1/messages",
            {"messages": ASKED},
            "stop_sequences",
            lambda answer: "".join(block["text"] for block in answer["content"]),
        ),
    ],
)
def test_b12_in_every_dialect(
    rig: ClientRig, path: str, body: dict[str, Any], stop: str, text_of: Callable[[Any], str]
) -> None:
    def ask(*stops: str) -> str:
        limits: dict[str, Any] = {"max_tokens": 20, "temperature": 0}
        where = limits
        if path.startswith("/api"):
            limits = {"options": (where := {"num_predict": 20, "temperature": 0})}
        if stops:
            where[stop.removeprefix("options.")] = list(stops)
        reply = post(rig, path, **body, **limits, stream=False)
        assert reply.status_code == 200, reply.text
        return text_of(reply.json())

    whole = ask()
    word = whole.split()[3]
    assert ask("not in it", word) == whole[: whole.index(word)] != ""


def test_b16_prompt_tokens_are_the_same_with_and_without_the_cache(rig: ClientRig) -> None:
    body = chat_body("Tell me about the number sixteen and its neighbours.")
    first, second = (post(rig, **body).json()["usage"] for _ in range(2))
    assert first["prompt_tokens"] == second["prompt_tokens"] > 10
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in (first, second)]
    assert cached[0] < cached[1] < second["prompt_tokens"]
    assert first["total_tokens"] == second["total_tokens"]


TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/leaf"}, "b": {"$ref": "#/$defs/leaf"}},
    "required": ["a", "b"],
    "additionalProperties": False,
    "$defs": {"leaf": {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}},
}
FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
PATTERN: dict[str, Any] = {
    "type": "object",
    "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}},
    "required": ["code"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("schema", [FLAT, TREE, PATTERN], ids=["flat", "refs", "pattern"])
@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "bare"])
def test_b19_a_schema_is_obeyed(rig: ClientRig, schema: dict[str, Any], wrapped: bool) -> None:
    given = (
        {"json_schema": {"name": "p", "strict": True, "schema": schema}} if wrapped else {"schema": schema}
    )
    fields = chat_body(max_tokens=80, response_format={"type": "json_schema", **given})
    answer = post(rig, **fields).json()
    assert answer["choices"][0]["finish_reason"] == "stop"
    jsonschema.validate(json.loads(answer["choices"][0]["message"]["content"]), schema)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "p"}},
        {"type": "yaml"},
    ],
    ids=["none", "none inside", "unknown"],
)
def test_b19_a_format_without_a_schema_is_refused(rig: ClientRig, given: dict[str, Any]) -> None:
    reply = post(rig, **chat_body(response_format=given))
    assert reply.status_code == 400
    assert reply.json()["error"]["param"].startswith("response_format")
