"""`relaydesk request show`."""

from __future__ import annotations

import json
from typing import Any

from relaydesk.core.codec import encode
from relaydesk.core.commands import ShowRequest
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import FaultView, RequestView

DONE = RequestView(
    "req_1", "tiny", "default", "/v1/chat/completions", True, "done", 1, choices=2, queue_ms=3,
    load_ms=12_345, first_token_ms=80, total_ms=900, prompt_tokens=40, cached_tokens=8, completion_tokens=16,
    tokens_per_s=19.5, finish_reasons=("stop", "length"), status=200,
)  # fmt: skip


def test_a_life_for_people(cli: Any, node: Any) -> None:
    node.answer(ShowRequest, DONE)
    result = cli("request", "show", "req_1")
    assert (result.code, node.seen) == (0, [ShowRequest("req_1")])
    for text in (
        "● req_1 done, HTTP 200",
        "tiny by key default, /v1/chat/completions, streamed, 2 choices",
        "in queue      3 ms",
        "model load    12.3 s",
        "first token   80 ms",
        "40 tokens, 8 cached",
        "19.5 tokens/s",
        "stop, length",
    ):
        assert text in result.out


def test_json_is_the_record(cli: Any, node: Any) -> None:
    node.answer(ShowRequest, DONE)
    assert cli("request", "show", "req_1", "--json").json == json.loads(encode(DONE))


def test_one_that_failed(cli: Any, node: Any) -> None:
    fault = FaultView("engine_failed", SafeText("the engine ended"), SafeText("try again"))
    node.answer(
        ShowRequest, RequestView("r", "tiny", "k", "/v1", False, "failed", 1, status=502, fault=fault)
    )
    out = cli("request", "show", "r").out
    assert "✗ r failed, HTTP 502" in out
    assert "the engine ended (engine_failed)" in out
    assert "try again" in out
    assert "in queue      –" in out
