"""`relaydesk model fit`: the report as it is, and drawn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.codec import encode
from relaydesk.core.commands import FitModel
from relaydesk.core.pool.fit import Component, FitReport, Suggestion
from relaydesk.surfaces.cli.model.fit import bars

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
        "  relaydesk model set qwen3-8b --kv-k q8_0 --kv-v q8_0\n",
    ):
        assert text in result.out


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"fits": True, "constraint": "", "suggestion": None}, "● qwen3-8b fits"),
        ({"ever_fits": False, "constraint": "total"}, "✗ qwen3-8b can never fit here"),
        ({"ever_fits": False, "settings_help": True}, "▲ qwen3-8b does not fit with these settings"),
        ({"trained_ctx": 4096}, "8192 tokens are more than the 4096 that qwen3-8b was trained for"),
        ({"need_mib": 20_480, "free_mib": 10_240}, " 10.00 GiB of 7.81 GiB\n"),
        ({"need_mib": 20_480}, "weights   3.91 GiB\n"),
        ({"fits": True, "spill_mib": 500}, "500 MiB of it would run from RAM"),
        ({"measured": True, "slots": 1}, "For 1 request at once with 8192 tokens each; measured"),
    ],
)
def test_what_is_said(cli: Any, node: Any, changes: dict[str, Any], text: str) -> None:
    node.answer(FitModel, report(**changes))
    assert text in cli("model", "fit", "qwen3-8b").out


def test_every_line_fits_80_columns(cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    node.answer(FitModel, report(reason="word " * 60, trained_ctx=4096, total_mib=24_064, free_mib=22_064))
    lines = cli("model", "fit", "qwen3-8b").out.splitlines()
    assert max(map(len, lines)) <= 80


def test_what_to_unload_comes_before_the_settings(cli: Any, node: Any) -> None:
    change = Suggestion(
        change="unload+slots", sentence="do both", ctx=8192, slots=2, kv_k="f16", kv_v="f16", unload=("old",)
    )
    node.answer(FitModel, report(suggestion=change))
    out = cli("model", "fit", "qwen3-8b").out
    assert out.endswith("  relaydesk model unload old\n  relaydesk model set qwen3-8b --slots 2\n")


def test_bars_are_on_one_scale() -> None:
    need, room = bars(report(), 40)
    cells = need[8:48].rstrip()
    assert len(cells) == round(6056 * 40 / 8000)
    assert (cells.count("█"), cells.count("▓"), cells.count("▒"), cells.count("░")) == (18, 10, 1, 1)
    assert room[8:48] == "─" * 25 + "━" * 15
    assert need.endswith("6056 MiB")
    assert room.endswith("3000 MiB of 8000 MiB")
