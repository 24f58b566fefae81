"""The client libraries for Node, unmodified, against a hub on TLS with its CA file.

Each library runs once, as one program of many steps (``tests/clients/node``); a test looks at one step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients import node_project
from tests.clients.rig import ClientRig

pytestmark = pytest.mark.engine

CALLS = [("call_a", "weather", '{"town":"Oslo"}'), ("call_b", "weather", '{"town":"Rome"}')]


@pytest.fixture(scope="module")
def openai(rig: ClientRig, node_clients: Path) -> dict[str, Any]:
    return node_project.run(node_clients, "openai.mjs", rig.environment)


@pytest.fixture(scope="module")
def anthropic(rig: ClientRig, node_clients: Path) -> dict[str, Any]:
    return node_project.run(node_clients, "anthropic.mjs", rig.environment)


@pytest.fixture(scope="module")
def ai(rig: ClientRig, node_clients: Path) -> dict[str, Any]:
    return node_project.run(node_clients, "ai.mjs", rig.environment)


def calls_of(message: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message["tool_calls"]
    ]


def test_openai_lists_and_finds_models_and_says_which_are_not_there(openai: dict[str, Any]) -> None:
    assert openai["list"] == ["absent", "big", "scripted", "small", "tiny"]
    assert openai["retrieve"] == "tiny"
    assert openai["unknown"]["thrown"] == "NotFoundError"
    assert (openai["unknown"]["code"], openai["unknown"]["param"]) == ("model_not_found", "model")
    assert openai["wrongKey"]["thrown"] == "AuthenticationError"
    assert openai["wrongKey"]["requestId"].startswith("req_")


def test_openai_streams_what_it_is_told_whole(openai: dict[str, Any]) -> None:
    whole, stream, usage = openai["chat"], openai["stream"], openai["usage"]
    text = whole["choices"][0]["message"]["content"]
    assert text
    assert stream["text"] == usage["text"] == text
    assert stream["finish"] == usage["finish"] == [whole["choices"][0]["finish_reason"]] == ["length"]
    assert stream["ids"] == 1
    assert stream["roles"] == ["assistant"]
    assert whole["requestId"] == whole["requestIdHeader"]
    assert "error" not in stream["keys"]


def test_openai_is_told_the_usage_where_it_asked_and_once(openai: dict[str, Any]) -> None:
    assert openai["stream"]["usages"] == openai["cut"]["usages"] == []
    (said,) = openai["usage"]["usages"]
    whole = openai["chat"]["usage"]
    assert openai["usage"]["choicesOfUsage"] == [[]]
    assert (said["prompt_tokens"], said["completion_tokens"]) == (whole["prompt_tokens"], 8)
    assert said["total_tokens"] == whole["total_tokens"] == whole["prompt_tokens"] + 8


def test_openai_gets_the_text_before_a_stop_text_and_no_more(openai: dict[str, Any]) -> None:
    seen = openai["stop"]
    before = seen["whole"][: seen["whole"].index(seen["word"])]
    assert before.strip()
    assert seen["cut"] == seen["streamed"]["text"] == before
    assert seen["finish"] == "stop"
    assert seen["streamed"]["finish"] == ["stop"]
    assert openai["cut"]["finish"] == ["length"]


def test_openai_may_send_null_and_what_we_do_not_know_but_no_wrong_type(openai: dict[str, Any]) -> None:
    assert openai["nulls"] == "Hello there"
    assert openai["wrongType"]["thrown"] == "BadRequestError"
    assert openai["wrongType"]["param"] == "temperature"


@pytest.mark.parametrize("step", ["overflow", "overflowStream"])
def test_openai_is_told_of_an_overflow_by_status(openai: dict[str, Any], step: str) -> None:
    seen = openai[step]
    assert (seen["thrown"], seen["status"]) == ("BadRequestError", 400)
    assert seen["code"] == "context_length_exceeded"
    assert "maximum context length is 1024 tokens" in seen["message"]


def test_openai_reads_text_whatever_is_between_it(openai: dict[str, Any]) -> None:
    assert openai["unicode"] == "Grüße 😊漢字\u2028\0"
    assert openai["comments"]["text"] == "Hello there"
    # With a silence longer than a heartbeat.
    assert openai["slow"]["text"] == "so late"
    assert openai["slow"]["finish"] == ["stop"]


@pytest.mark.parametrize("step", ["breaks", "fails"])
def test_openai_throws_what_fails_behind_the_headers(openai: dict[str, Any], step: str) -> None:
    seen = openai[step]
    assert seen["text"] == "Hello"
    assert (seen["thrown"], seen["code"]) == ("APIError", "engine_failed")
    assert ("out of memory" in seen["message"]) == (step == "fails")


def test_openai_keeps_two_calls_apart(openai: dict[str, Any]) -> None:
    for choice in (openai["calls"], openai["helper"]["choice"]):
        assert calls_of(choice["message"]) == CALLS
        assert choice["message"]["content"] is None
        assert choice["finish_reason"] == "tool_calls"
    assert openai["helper"]["usage"]["total_tokens"] == 14
    assert openai["runTools"] == {"text": "Results: sun in Oslo, sun in Rome", "asked": ["Oslo", "Rome"]}


@pytest.mark.parametrize("step", ["required", "byName"])
def test_openai_is_not_given_prose_for_a_call_it_forced(openai: dict[str, Any], step: str) -> None:
    """The call that was asked for, or a refusal that names the field."""
    seen = openai[step]
    if "thrown" in seen:
        assert (seen["status"], seen["code"]) == (400, "unsupported")
        assert seen["param"] in ("tool_choice", "tools")
    else:
        for choice in (seen["whole"], seen["streamed"]):
            assert choice["finish_reason"] == "tool_calls"
            assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["weather"]
            assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["town"]


def test_openai_parses_what_a_schema_allowed(openai: dict[str, Any]) -> None:
    assert openai["parse"]["colour"] in ("red", "blue")


def test_openai_leaves_a_stream_and_the_hub_stops(openai: dict[str, Any], rig: ClientRig) -> None:
    assert openai["abort"]["chunks"] >= 4
    record = rig.request("openai-node-abort")
    assert (record.state, record.status) == ("cancelled", 499)
    assert record.completion_tokens < 600


def test_openai_completes_bare_prompts(openai: dict[str, Any]) -> None:
    whole, stream = openai["completion"], openai["completionStream"]
    (choice,) = whole["choices"]
    assert whole["object"] == "text_completion"
    assert choice["text"]
    assert (stream["text"], stream["finish"]) == (choice["text"], [choice["finish_reason"]])
    ((choices, usage),) = stream["usages"]
    assert choices == []
    assert usage["total_tokens"] == whole["usage"]["total_tokens"] == usage["prompt_tokens"] + 8
    seen = openai["completionStop"]
    assert seen["cut"] == seen["whole"][: seen["whole"].index(seen["word"])] != ""
    assert seen["finish"] == "stop"
    assert openai["completions"]["indexes"] == [0, 1]
    assert openai["completions"]["usage"]["completion_tokens"] == 16


def test_openai_gets_vectors_by_its_own_default(openai: dict[str, Any]) -> None:
    seen = openai["embed"]
    assert seen["sizes"] == seen["sizesPlain"] == [576] * 3
    assert seen["indexes"] == [0, 1, 2]
    assert seen["off"] < 1e-6
    assert seen["norm"] == pytest.approx(1, abs=1e-4)
    assert seen["same"] > 0.01
    assert seen["usage"]["prompt_tokens"] == seen["usage"]["total_tokens"] >= 3
    assert openai["embedOne"] == 1


def test_openai_is_told_which_input_cannot_be_embedded(openai: dict[str, Any]) -> None:
    assert (openai["embedFormat"]["status"], openai["embedFormat"]["param"]) == (400, "encoding_format")
    assert openai["embedTokens"]["status"] == 400
    assert "check_embedding_ctx_length" in openai["embedTokens"]["message"]


def test_openai_gets_a_response_whole_and_as_events(openai: dict[str, Any]) -> None:
    whole, stream = openai["response"], openai["responseStream"]
    assert whole["output_text"]
    assert stream["text"] == whole["output_text"]
    for response in (whole, stream["last"]):
        assert response["object"] == "response"
        assert response["status"] == "incomplete"
        assert response["incomplete_details"] == {"reason": "max_output_tokens"}
        assert response["usage"]["output_tokens"] == 16
    assert stream["ordered"]
    assert stream["types"][0] == "response.created"
    assert stream["types"][-1] == "response.incomplete"
    assert openai["responseSlow"]["text"] == "so late"
    assert openai["responseSlow"]["types"][-1] == "response.completed"


def test_openai_calls_tools_by_responses(openai: dict[str, Any]) -> None:
    assert [(item["call_id"], item["name"], item["arguments"]) for item in openai["responseCalls"]] == CALLS
    assert openai["responseHelper"] == [list(call) for call in CALLS]
    assert openai["responseRound"] == "Results: sun in Oslo, sun in Rome"


def test_openai_throws_what_fails_in_a_response(openai: dict[str, Any]) -> None:
    assert openai["responseFails"]["thrown"] == "APIError"
    assert "out of memory" in openai["responseFails"]["message"]
    assert openai["responseOverflow"]["code"] == "context_length_exceeded"
    assert openai["responseOverflow"]["param"] == "input"


def test_openai_retries_what_may_get_better_and_nothing_else(openai: dict[str, Any]) -> None:
    permanent, again = openai["permanent"], openai["again"]
    assert permanent["thrown"] == again["thrown"] == "InternalServerError"
    assert permanent["code"] == "model_unavailable"
    assert permanent["seen"] == [{"status": 503, "after": None, "retry": "false"}]
    assert again["code"] == "model_load_failed"
    assert [each["status"] for each in again["seen"]] == [503] * 3
    assert all(int(each["after"]) >= 1 for each in again["seen"])
    # Asked for by Retry-After, and taken.
    assert again["seconds"] >= 1


def test_openai_does_not_hammer_where_a_quota_is_spent(openai: dict[str, Any]) -> None:
    spent, crowded = openai["spent"], openai["crowded"]
    assert (spent["thrown"], spent["code"]) == ("RateLimitError", "tokens_per_day_exceeded")
    assert spent["seen"] == [{"status": 429, "after": None, "retry": "false"}]
    assert "UTC" in spent["message"]
    assert crowded["texts"] == ["so late"] * 2
    assert sorted(each["status"] for each in crowded["seen"]) == [200, 200, 429]
    assert [each["after"] for each in crowded["seen"] if each["status"] == 429] == ["1"]


def test_ai_sdk_chats(ai: dict[str, Any]) -> None:
    whole, stream = ai["chat"], ai["stream"]
    assert whole["text"]
    assert stream["text"] == whole["text"]
    assert stream["finish"] == whole["finish"] == "length"
    assert stream["usage"] == [*whole["usage"], sum(whole["usage"])]
    assert whole["usage"][1] == 8


def test_ai_sdk_completes_bare_prompts_and_gets_vectors(ai: dict[str, Any]) -> None:
    whole, stream = ai["completion"], ai["completion"]["streamed"]
    assert whole["text"]
    assert (stream["text"], stream["errors"]) == (whole["text"], [])
    assert whole["finish"] == stream["finish"] == "length"
    assert stream["usage"][1] == 8
    assert ai["embed"]["sizes"] == [576, 576]
    assert ai["embed"]["usage"]["tokens"] >= 2


def test_ai_sdk_reads_text_whatever_is_between_it(ai: dict[str, Any]) -> None:
    expected = {"unicode": "Grüße 😊漢字\u2028\0", "comments": "Hello there", "slow": "so late"}
    assert {step: ai[step]["text"] for step in expected} == expected
    for step in expected:
        assert (ai[step]["errors"], ai[step]["finish"]) == ([], "stop")


@pytest.mark.parametrize("step", ["breaks", "fails"])
def test_ai_sdk_is_told_what_fails_behind_the_headers(ai: dict[str, Any], step: str) -> None:
    seen = ai[step]
    assert (seen["text"], seen["finish"]) == ("Hello", "error")
    (error,) = seen["errors"]
    assert error["code"] == "engine_failed"
    assert ("out of memory" in error["message"]) == (step == "fails")


def test_ai_sdk_calls_tools(ai: dict[str, Any]) -> None:
    assert ai["calls"]["calls"] == [
        ["call_a", "weather", {"town": "Oslo"}],
        ["call_b", "weather", {"town": "Rome"}],
    ]
    assert (ai["calls"]["finish"], ai["calls"]["errors"]) == ("tool-calls", [])
    assert ai["rounds"] == {"text": "Results: sun in Oslo, sun in Rome", "steps": 2}


def test_ai_sdk_gets_an_object(ai: dict[str, Any]) -> None:
    assert ai["object"]["colour"] in ("red", "blue")


def test_ai_sdk_shows_the_sentence_of_an_error(ai: dict[str, Any]) -> None:
    assert (ai["wrongKey"]["thrown"], ai["wrongKey"]["status"]) == ("APICallError", 401)
    assert "relaydesk token --api" in ai["wrongKey"]["message"]
    assert (ai["overflow"]["thrown"], ai["overflow"]["status"]) == ("APICallError", 400)
    assert "maximum context length is 1024 tokens" in ai["overflow"]["message"]


def test_anthropic_gets_a_message_whole_and_as_events(anthropic: dict[str, Any]) -> None:
    whole, stream = anthropic["whole"], anthropic["stream"]
    (block,) = whole["content"]
    assert block["type"] == "text" and block["text"]
    assert stream["text"] == block["text"]
    assert stream["content"] == whole["content"]
    assert whole["stop_reason"] == stream["stop"] == "max_tokens"
    # What a cache held is counted beside the rest.
    usages = (whole["usage"], stream["usage"])
    read = [usage["input_tokens"] + usage["cache_read_input_tokens"] for usage in usages]
    assert read[0] == read[1] == anthropic["count"]["input_tokens"] > 10
    assert whole["usage"]["output_tokens"] == stream["usage"]["output_tokens"] == 8
    assert anthropic["system"]["content"][0]["text"] != block["text"]


def test_anthropic_gets_the_text_before_a_stop_text(anthropic: dict[str, Any]) -> None:
    seen = anthropic["stop"]
    assert seen["cut"] == seen["whole"][: seen["whole"].index(seen["word"])] != ""


def test_anthropic_reads_text_whatever_is_between_it(anthropic: dict[str, Any]) -> None:
    assert anthropic["unicode"]["text"] == "Grüße 😊漢字\u2028\0"
    assert anthropic["slow"]["text"] == "so late"
    assert anthropic["unicode"]["stop"] == anthropic["slow"]["stop"] == "end_turn"


@pytest.mark.parametrize("step", ["breaks", "fails"])
def test_anthropic_throws_what_fails_behind_the_headers(anthropic: dict[str, Any], step: str) -> None:
    seen = anthropic[step]
    assert (seen["text"], seen["thrown"], seen["type"]) == ("Hello", "APIError", "api_error")
    assert ("out of memory" in seen["message"]) == (step == "fails")


def test_anthropic_calls_tools(anthropic: dict[str, Any]) -> None:
    assert [(block["id"], block["name"], block["input"]) for block in anthropic["calls"]["content"]] == [
        ("call_a", "weather", {"town": "Oslo"}),
        ("call_b", "weather", {"town": "Rome"}),
    ]
    assert anthropic["calls"]["stop"] == "tool_use"
    assert [block["text"] for block in anthropic["round"]] == ["Results: sun in Oslo, sun in Rome"]


def test_anthropic_has_a_class_for_each_refusal(anthropic: dict[str, Any]) -> None:
    assert anthropic["overflow"]["thrown"] == "BadRequestError"
    assert "prompt is too long" in anthropic["overflow"]["message"]
    assert anthropic["unknown"]["thrown"] == "NotFoundError"
    assert anthropic["wrongKey"]["thrown"] == "AuthenticationError"
    assert anthropic["permanent"]["seen"] == [{"status": 503, "after": None, "retry": "false"}]
