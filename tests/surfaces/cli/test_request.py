"""`relaydesk request`: the list, and one request's life with where its time went."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from relaydesk.core.codec import encode
from relaydesk.core.commands import ShowRequest
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import FaultView, RequestsView, RequestView

DONE = RequestView(
    "req_1", "tiny", "default", "/v1/chat/completions", True, "done", 1, choices=2, queue_ms=3,
    load_ms=12_345, first_token_ms=12_428, total_ms=13_248, prompt_tokens=40, cached_tokens=8,
    completion_tokens=16, tokens_per_s=19.5, finish_reasons=("stop", "length"), status=200,
)  # fmt: skip
FAULT = FaultView("engine_failed", SafeText("the engine ended"), SafeText("try again"))
FAILED = RequestView("req_2", "tiny", "k", "/v1", False, "failed", 5, total_ms=40, status=502, fault=FAULT)


def test_a_life_for_people(cli: Any, node: Any) -> None:
    node.answer(ShowRequest, DONE)
    result = cli("request", "show", "req_1")
    assert (result.code, node.seen) == (0, [ShowRequest("req_1")])
    for text in (
        "● req_1 done, HTTP 200",
        "tiny by key default, /v1/chat/completions, streamed, 2 choices, ",
        "░ waited    3 ms\n",
        "▒ load    12.3 s  ◀ most of it\n",
        "▓ prompt   80 ms  40 tokens, 8 of them cached, 400.0 tokens/s\n",
        "█ answer  820 ms  16 tokens, 19.5 tokens/s\n",
        "= total   13.2 s\n",
        "finished by  stop, length",
    ):
        assert text in result.out
    bar = re.search(r"^  (░*▒+▓*█+)$", result.out, re.M)
    assert bar is not None and len(bar[1]) == 72
    assert bar[1].count("▒") > 60


def test_a_warm_model_was_loaded(cli: Any, node: Any) -> None:
    node.answer(ShowRequest, msgspec.structs.replace(DONE, load_ms=None, first_token_ms=83, total_ms=903))
    out = cli("request", "show", "req_1").out
    assert "▒ load         –  it was loaded\n" in out
    assert "█ answer  820 ms  16 tokens, 19.5 tokens/s  ◀ most of it" in out


def test_json_is_the_record_with_the_two_parts_that_follow_from_it(cli: Any, node: Any) -> None:
    node.answer(ShowRequest, DONE)
    found = cli("request", "show", "req_1", "--json").json
    assert found == {**json.loads(encode(DONE)), "prefill_ms": 80, "decode_ms": 820}
    running = msgspec.structs.replace(DONE, state="prefill", first_token_ms=None, total_ms=None)
    node.answer(ShowRequest, running)
    found = cli("request", "show", "req_1", "--json").json
    assert (found["prefill_ms"], found["decode_ms"]) == (None, None)


def test_one_that_failed(cli: Any, node: Any) -> None:
    node.answer(ShowRequest, FAILED)
    out = cli("request", "show", "req_2").out
    for text in ("✗ req_2 failed, HTTP 502", "the engine ended (engine_failed)", "try again"):
        assert text in out
    assert "waited  40 ms  ◀ most of it" in out
    assert "prompt      –\n" in out


def test_one_that_went_to_the_network(cli: Any, node: Any) -> None:
    went = {"placement": "network", "relays": ("5:1",), "targets": ("7:2",), "paid": 1234}
    node.answer(ShowRequest, msgspec.structs.replace(DONE, **went))
    out = cli("request", "show", "req_1").out
    assert "network      read by 7:2, carried sealed by 5:1\n" in out
    assert "paid         1,234 microunits\n" in out


def test_one_that_still_runs(cli: Any, node: Any) -> None:
    node.answer(ShowRequest, msgspec.structs.replace(FAILED, state="loading", total_ms=None, fault=None))
    out = cli("request", "show", "req_2").out
    assert re.search(r"▒ load +[0-9.]+ s  under way", out)
    assert re.search(r"= total +[0-9.]+ s so far", out)


def test_the_list_is_newest_first_and_last_is_its_first(cli: Any, node: Any) -> None:
    running = RequestView("req_3", "other", "default", "/v1", True, "generating", 9, completion_tokens=2)
    node.views["requests"] = RequestsView((running,), (FAILED, DONE))
    head, *rows = cli("request", "list").out.splitlines()
    assert head.split() == ["REQUEST", "MODEL", "STATE", "HTTP", "TOKENS", "TIME", "OUTCOME"]
    assert [row.split()[0] for row in rows] == ["req_3", "req_2", "req_1"]
    assert rows[1].split() == ["req_2", "tiny", "✗", "failed", "502", "0+0", "40", "ms", "engine_failed"]
    assert "40+16" in rows[2] and "13.2 s" in rows[2] and rows[2].endswith("stop, length")
    found = cli("request", "list", "--json").json["requests"]
    assert [row["id"] for row in found] == ["req_3", "req_2", "req_1"]
    node.answer(ShowRequest, running)
    cli("request", "show", "--last")
    assert node.seen == [ShowRequest("req_3")]


def test_the_list_fits_a_terminal(cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    long = msgspec.structs.replace(DONE, id="req_" + "0" * 24, model="a-model-with-a-long-name")
    node.views["requests"] = RequestsView((), (long,))
    monkeypatch.setenv("COLUMNS", "80")
    out = cli("request", "list").out
    assert max(map(len, out.splitlines())) <= 80
    assert long.id in out and "a-model…" in out
    monkeypatch.delenv("COLUMNS")
    assert "a-model-with-a-long-name" in cli("request", "list").out


def test_no_request_yet(cli: Any, node: Any) -> None:
    assert cli("request", "list").out.startswith("No request yet.")
    result = cli("request", "show", "--last")
    assert (result.code, result.out) == (1, "")
    assert "there was no request since the node started" in result.err
