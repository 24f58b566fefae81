"""`relaydesk model fit`: the report as it is, and drawn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.codec import encode
from relaydesk.core.commands import FitModel
from relaydesk.core.pool.fit import Component, FitReport, Suggestion
from relaydesk.surfaces.cli.model.fit import bars, shares

PARTS = (
    Component("weights", 4000),
    Component("kv", 2000),
    Component("overhead", 40),
    Component("margin", 16),
)


def report(**changes: Any) -> FitReport:
    base: dict[str, Any] = {
        "model": "qwen3-8b",
        "fits": False,
        "ever_fits": True,
        "constraint": "free",
        "reason": '"qwen3-8b" needs 6056 MiB and 3000 MiB are free',
        "components": PARTS,
        "need_mib": 6056,
        "free_mib": 3000,
        "total_mib": 8000,
        "ctx": 8192,
        "slots": 4,
        "suggestion": Suggestion(
            change="kv", sentence="keep its KV cache as q8_0: it then fits", ctx=8192, slots=4, kv_k="q8_0",
            kv_v="q8_0", need_mib=5000,
        ),
    }  # fmt: skip
    return FitReport(**{**base, **changes})


def test_json_is_the_report(cli: Any, node: Any) -> None:
    node.answer(FitModel, report())
    result = cli("model", "fit", "qwen3-8b", "--json")
    assert (result.code, result.json) == (0, json.loads(encode(report())))


def test_a_report_that_does_not_fit_is_still_code_0(cli: Any, node: Any) -> None:
    node.answer(FitModel, report())
    result = cli("model", "fit", "qwen3-8b")
    assert (result.code, result.err) == (0, "")
    for text in (
        "▲ qwen3-8b does not fit now",
        "KV cache",
        "For 4 requests at once with 8192 tokens each; an estimate until its first load.",
        '"qwen3-8b" needs 6056 MiB and 3000 MiB are free.',
        "Next: keep its KV cache as q8_0: it then fits.",
        "  relaydesk model set qwen3-8b --ctx 8192 --slots 4 --kv-k q8_0 --kv-v q8_0",
    ):
        assert text in result.out


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"fits": True, "constraint": "", "suggestion": None}, "● qwen3-8b fits"),
        ({"ever_fits": False, "constraint": "total"}, "✗ qwen3-8b can never fit here"),
        ({"fits": True, "spill_mib": 500}, "500 MiB of it would run from RAM"),
        ({"measured": True, "slots": 1}, "For 1 request at once with 8192 tokens each; measured"),
    ],
)
def test_what_is_said(cli: Any, node: Any, changes: dict[str, Any], text: str) -> None:
    node.answer(FitModel, report(**changes))
    assert text in cli("model", "fit", "qwen3-8b").out


def test_bars_are_on_one_scale() -> None:
    need, room = bars(report(), 40)
    cells = need[8:48].rstrip()
    assert len(cells) == round(6056 * 40 / 8000)
    assert (cells.count("█"), cells.count("▓"), cells.count("▒"), cells.count("░")) == (18, 10, 1, 1)
    assert room[8:48] == "─" * 25 + "━" * 15
    assert need.endswith("6056 MiB")
    assert room.endswith("3000 MiB of 8000 MiB")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 1 << 20), max_size=8), st.integers(0, 200))
def test_shares_add_up_and_lose_no_part(parts: list[int], length: int) -> None:
    cells = shares(parts, length)
    there = sum(1 for part in parts if part)
    assert all((cell > 0) == (part > 0) for cell, part in zip(cells, parts, strict=True)) or not there
    if there:
        assert sum(cells) == max(length, there)
