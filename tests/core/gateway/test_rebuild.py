"""What an engine is sent, whatever the client sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.rebuild import engine_body
from relaydesk.core.gateway.request import parse_chat
from relaydesk.core.gateway.sampling import MAX_LAST, choice_seed


def body(fields: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    request = parse_chat(
        json.dumps({"messages": [{"role": "user", "content": "hi"}], **(fields or {})}).encode()
    )
    found: dict[str, Any] = json.loads(
        engine_body(request, **{"alias": "m", "slot": 2, "cache_prompt": True, **options})
    )
    return found


def test_the_least_that_is_sent() -> None:
    assert body({"model": "public", "stream": False, "n": 3}) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "id_slot": 2,
        "cache_prompt": True,
    }


def test_nothing_outside_the_allow_list_passes() -> None:
    tricks = {
        "n_predict": 40,
        "id_slot": 7,
        "grammar": "root ::= x",
        "json_schema": {},
        "ignore_eos": True,
        "samplers": ["x"],
        "lora": [],
        "n_probs": 9,
        "timings_per_token": True,
        "return_tokens": True,
        "stream_options": {"include_usage": False, "x": 1},
        "prompt": "x",
        "user": "someone",
    }
    assert body({**tricks, "max_tokens": 4}) == body({"max_tokens": 4})


def test_what_is_meant_for_the_engine_passes() -> None:
    given = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
        "presence_penalty": 1.0,
        "frequency_penalty": -1.0,
        "repeat_penalty": 1.1,
        "stop": ["a"],
        "seed": 7,
        "logit_bias": {"5": -100.0},
        "logprobs": True,
        "top_logprobs": 3,
        "max_tokens": 4,
        "parallel_tool_calls": False,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    }
    found = body(given)
    assert {name: found[name] for name in given} == given


@pytest.mark.parametrize("asked", [None, 1, 30])
def test_the_limit_is_sent_where_there_is_one(asked: int | None) -> None:
    assert body({"max_tokens": asked}).get("max_tokens") == asked


def test_each_choice_has_its_own_fixed_seed() -> None:
    assert [body({"seed": 5, "n": 3}, choice=i)["seed"] for i in range(3)] == [5, 6, 7]
    assert "seed" not in body({"n": 3}, choice=2)


@pytest.mark.parametrize(("seed", "sent"), [(-1, 0), (-2, 2**32 - 2), (2**32 - 1, 0), (2**40 + 3, 3), (0, 0)])
def test_no_seed_is_the_engines_sign_for_random(seed: int, sent: int) -> None:
    assert choice_seed(seed, 0) == sent


def test_the_cache_needs_both_sides() -> None:
    assert body({"cache_prompt": True}, cache_prompt=False)["cache_prompt"] is False
    assert body({"cache_prompt": False}, cache_prompt=True)["cache_prompt"] is False


def test_tool_choice_none_means_no_tools() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert "tools" not in body({"tools": tools, "tool_choice": "none", "parallel_tool_calls": True})


def test_a_plain_openai_engine_gets_no_extensions() -> None:
    assert not body(extensions=False).keys() & {"return_progress", "id_slot", "cache_prompt"}


def test_reasoning_is_told_by_the_template_or_by_openais_field() -> None:
    options = {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}}
    ours, far = body(options), body(options, extensions=False)
    assert (ours["chat_template_kwargs"], "reasoning_effort" in ours) == ({"enable_thinking": True}, False)
    assert (far["chat_template_kwargs"], far["reasoning_effort"]) == ({"enable_thinking": True}, "none")
    assert "chat_template_kwargs" not in body({"reasoning_effort": "low"}, extensions=False)


def test_all_of_the_last_tokens_and_no_more_than_there_can_be() -> None:
    assert "repeat_last_n" not in body()
    assert body({"repeat_last_n": 64})["repeat_last_n"] == 64
    assert body({"repeat_last_n": -1})["repeat_last_n"] == MAX_LAST
    with pytest.raises(PeerError) as caught:
        body({"repeat_last_n": MAX_LAST + 1})
    assert caught.value.fault.param == "repeat_last_n"


def test_logprobs_are_asked_for_so_that_they_come() -> None:
    for asked, ours, far in ((None, 1, None), (0, 1, 0), (5, 5, 5)):
        fields = {"logprobs": True, "top_logprobs": asked}
        assert body(fields)["top_logprobs"] == ours
        assert body(fields, extensions=False).get("top_logprobs") == far
    assert "top_logprobs" not in body({"logprobs": False, "top_logprobs": 0})
