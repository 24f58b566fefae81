from __future__ import annotations

import json
from typing import Any

from relaydesk.core.gateway.completions.rebuild import CompletionBody, completion_body
from relaydesk.core.gateway.completions.request import parse_completion


def rebuilt(choice: int = 0, *, infill: Any = None, extensions: bool = True, **fields: Any) -> dict[str, Any]:
    request = parse_completion(json.dumps({"prompt": "Hi", **fields}).encode())
    body: dict[str, Any] = json.loads(
        completion_body(
            request, choice, alias="m", slot=3, cache_prompt=True, extensions=extensions, infill=infill
        )
    )
    return body


def test_nothing_but_known_fields_and_always_streamed_and_counted() -> None:
    body = rebuilt(n_predict=9, grammar="x", id_slot=0, samplers=[], seed=4, top_k=3, echo=True, user="u")
    assert body == {
        "model": "m",
        "prompt": "Hi",
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": 4,
        "top_k": 3,
        "return_progress": True,
        "id_slot": 3,
        "cache_prompt": True,
    }
    assert set(body) <= set(CompletionBody.__struct_fields__)


def test_each_choice_has_its_prompt_and_its_seed() -> None:
    asked = [rebuilt(choice, prompt=["a", "b"], n=2, seed=5) for choice in range(4)]
    assert [(each["prompt"], each["seed"]) for each in asked] == [("a", 5), ("a", 6), ("b", 5), ("b", 6)]


def test_a_far_server_gets_openais_fields_only() -> None:
    body = rebuilt(extensions=False, suffix="after", logprobs=0, infill=(1, 2, 3))
    assert body["suffix"] == "after"
    assert body["prompt"] == "Hi"
    assert body["logprobs"] == 0
    assert not {"id_slot", "cache_prompt", "return_progress"} & set(body)


def test_a_gap_is_a_prompt_of_texts_and_tokens() -> None:
    assert rebuilt(suffix=" 2\n", infill=(7, 8, 9))["prompt"] == ["", 7, "Hi", 8, " 2\n", 9]
    assert rebuilt(suffix="x", prompt=[4, 5], infill=(7, 8, 9))["prompt"] == ["", 7, 4, 5, 8, "x", 9]
    assert "suffix" not in rebuilt(suffix="x", infill=(7, 8, 9))


def test_logprobs_without_alternatives_still_ask_for_one() -> None:
    assert rebuilt(logprobs=0)["logprobs"] == 1
    assert rebuilt(logprobs=5)["logprobs"] == 5
    assert "logprobs" not in rebuilt()


def test_a_client_may_forbid_the_cache_and_not_allow_it() -> None:
    assert rebuilt(cache_prompt=False)["cache_prompt"] is False
    request = parse_completion(b'{"prompt":"Hi","cache_prompt":true}')
    body = completion_body(request, 0, alias="m", slot=0, cache_prompt=False, extensions=True)
    assert json.loads(body)["cache_prompt"] is False
