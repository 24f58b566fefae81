"""Requests as rows, and where one's time went."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import RequestsView, RequestView
from relaydesk.core.view.timing import parts
from relaydesk.surfaces.console.panes.requests import present
from relaydesk.surfaces.console.widgets.spans import Line, line_text, line_width
from tests.surfaces.console.panes.scenes import FAILURE, busy, hostile, texts
from tests.surfaces.console.stage import NOW_MS, sample

_KEYS = [column.key for column in present.COLUMNS]
DONE = sample()["requests"].recent[0]


def _cells(view: RequestView) -> dict[str, str]:
    (row,) = present.rows(RequestsView((), (view,)), NOW_MS)
    return dict(zip(_KEYS, (cell.text for cell in row.cells), strict=True))


def test_a_row_says_it_all() -> None:
    assert _cells(DONE) == {
        "state": "● done",
        "model": "smollm2",
        "key": "default",
        "wait": "2 ms",
        "load": "1930 ms",
        "first": "2204 ms",
        "rate": "24",
        "tokens": "40+64",
        "total": "4870 ms",
        "outcome": "stop",
        "id": "req_01hq6",
    }


def test_those_under_way_come_first_and_grow_older() -> None:
    requests = busy()["requests"]
    states = [row.cells[0].text for row in present.rows(requests, NOW_MS)]
    assert states == ["◐ answering", "◐ prompt 27%", "● done", "✗ failed"]
    total = _KEYS.index("total")
    assert present.rows(requests, NOW_MS)[0].cells[total].text == "2400 ms"
    assert present.rows(requests, NOW_MS + 1_000)[0].cells[total].text == "3400 ms"
    assert present.rows(requests, NOW_MS + 1_000)[2] is present.rows(requests, NOW_MS)[2]


def test_failures_alone() -> None:
    assert [row.key for row in present.rows(busy()["requests"], NOW_MS, failures=True)] == ["req_01hq5"]


def test_totals_sort_by_time_and_not_by_text() -> None:
    slow = msgspec.structs.replace(DONE, id="slow", total_ms=20_400)
    rows = present.rows(RequestsView((), (DONE, slow)), NOW_MS)
    assert [row.cells[_KEYS.index("total")].sort for row in rows] == [4870, 20_400]


def test_a_failure_says_why_in_the_list() -> None:
    assert _cells(FAILURE)["outcome"] == "unavailable"
    assert max(len(text) for text in present.CODES.values()) <= 13


def test_parts_add_up_and_the_largest_is_pointed_at() -> None:
    lines = texts(present.time_lines(parts(DONE), 60))
    assert lines == [
        "█▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░",
        "",
        "██ waited for a slot     2 ms",
        "▓▓ loading the model  1930 ms",
        "▒▒ read the prompt     272 ms  40 tokens, 147/s",
        "░░ wrote the answer   2666 ms  ◂ most  64 tokens, 24/s",
        "   total              4870 ms",
    ]
    assert 2 + 1930 + 272 + 2666 == 4870


def test_a_detail_has_error_and_next_step() -> None:
    lines = texts(present.detail(FAILURE, NOW_MS, 60))
    assert lines[0] == "✗ failed, HTTP 503"
    said = " ".join(" ".join(lines).split())
    assert '✗ "qwen3-32b" needs 21840 MiB, more than the 15800 MiB there are in all. Next: ' in said
    assert "Next: `relaydesk model fit qwen3-32b` says what would help." in said
    assert lines[-1] == "shell       relaydesk request show req_01hq5"


def test_one_under_way_says_so() -> None:
    lines = texts(present.detail(sample()["requests"].in_flight[1], NOW_MS, 60))
    assert lines[0] == "◐ prompt 27%"
    assert any(line.endswith("300 ms  so far") for line in lines)
    assert any("under way, 512 tokens" in line for line in lines)


def test_a_model_that_was_loaded_says_so_where_loading_would_stand() -> None:
    warm = msgspec.structs.replace(DONE, load_ms=None)
    assert "▓▓ loading the model        –  it was loaded" in texts(present.detail(warm, NOW_MS, 60))


def test_ascii_bars() -> None:
    bar, _, *legend = (line_text(line) for line in present.time_lines(parts(DONE), 40, ascii=True))
    assert set(bar) == set("#=+-")
    assert [line[:2] for line in legend] == ["##", "==", "++", "--", "  "]


@pytest.mark.parametrize("values", [busy(), hostile()], ids=["busy", "hostile"])
@pytest.mark.parametrize("width", [38, 56, 78])
def test_no_line_is_wider_than_the_detail(values: dict[str, Any], width: int) -> None:
    requests = values["requests"]
    for view in (*requests.in_flight, *requests.recent):
        assert all(line_width(line) <= width for line in present.detail(view, NOW_MS, width))


_MS = st.none() | st.integers(0, 100_000)


@given(_MS, _MS, _MS, st.integers(0, 200_000), st.sampled_from(["done", "failed", "cancelled", "generating"]))
def test_any_record_can_be_shown(
    queue: int | None, load: int | None, first: int | None, total: int, state: str
) -> None:
    view = msgspec.structs.replace(
        DONE, queue_ms=queue, load_ms=load, first_token_ms=first, total_ms=total, state=state
    )
    timing = parts(view)
    assert sum(part.ms or 0 for part in timing.parts) == total
    bar = present.time_lines(timing, 40)[0]
    assert (line_width(bar) == 40) == (total > 0)


def test_a_failure_without_a_next_step_gets_one() -> None:
    assert FAILURE.fault is not None
    for code, said in (
        ("model_unavailable", "Next: `relaydesk model fit qwen3-32b` says what would help; so does 2."),
        ("client_closed", "Next: nothing here: its client hung up."),
        ("internal_error", "Next: 5 has the log around its time."),
    ):
        bare = msgspec.structs.replace(FAILURE.fault, code=code, hint=safe_text(""))
        view = msgspec.structs.replace(FAILURE, fault=bare)
        assert said in " ".join(" ".join(texts(present.detail(view, NOW_MS, 60))).split())


def test_what_was_refused_has_no_model_and_loaded_none() -> None:
    refused = msgspec.structs.replace(FAILURE, model="", total_ms=0, status=400)
    assert _cells(refused)["model"] == "–"
    lines = texts(present.detail(refused, NOW_MS, 70))
    assert any(line.startswith("model       –") for line in lines)
    bad = msgspec.structs.replace(refused, fault=msgspec.structs.replace(refused.fault, code="invalid_json"))
    load = next(line for line in texts(present.detail(bad, NOW_MS, 70)) if "loading the model" in line)
    assert load.endswith("–  it never came so far")


def test_what_went_to_the_network_says_who_read_it() -> None:
    away = msgspec.structs.replace(DONE, placement="network")
    assert "goes to the relay network" in _flat(present.detail(away, NOW_MS, 80))
    away = msgspec.structs.replace(away, relays=("5:1",), targets=("7:2",), paid=1_234)
    text = _flat(present.detail(away, NOW_MS, 80))
    for words in ("read by 7:2", "via relay 5:1", "paid 1,234 microunits"):
        assert words in text
    assert "read by" not in _flat(present.detail(DONE, NOW_MS, 80))


def _flat(lines: tuple[Line, ...]) -> str:
    return " ".join(" ".join(texts(lines)).split())
