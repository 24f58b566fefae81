"""Audit records as rows and as a detail."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.access.audit import AuditFilter
from relaydesk.surfaces.console.panes.audit import present
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import AUDIT, DAY_MS, hostile_audit, texts
from tests.surfaces.console.stage import NOW_MS

DONE, REFUSED, LEFT, FAILED = AUDIT


def test_a_row_says_who_asked_what_and_what_came_of_it() -> None:
    rows = present.rows(AUDIT, NOW_MS)
    assert [cell.text for cell in rows[0].cells] == [
        "15:09:26", "● done", "", "ann", "smollm2", "91+46", "2400 ms", "192.0.2.7", "/v1/chat/completions",
        "host",
    ]  # fmt: skip
    assert [cell.text for cell in rows[1].cells[1:6]] == ["▲ refused", "day quota", "ann", "–", ""]
    assert [row.cells[1].tone for row in rows] == ["ok", "warn", "warn", "error"]


def test_what_is_not_of_today_shows_its_day_and_sorts_by_its_time() -> None:
    (row,) = present.rows((DONE,), NOW_MS + DAY_MS)
    assert (row.cells[0].text, row.cells[0].sort) == ("Mar 14", DONE.at_ms)


def test_two_records_of_one_id_are_two_rows() -> None:
    again = msgspec.structs.replace(DONE, at_ms=DONE.at_ms + 1)
    assert len({row.key for row in present.rows((again, DONE), NOW_MS)}) == 2


def test_a_detail_has_every_field() -> None:
    record = msgspec.structs.replace(
        DONE,
        cached_tokens=40,
        choices=2,
        queue_ms=3,
        load_ms=1_930,
        first_token_ms=2_100,
        machines=("7:2", "8:0"),
        relays=("5:1",),
        targets=("7:2", "8:0"),
        paid=1_234,
    )
    text = " ".join(" ".join(texts(present.detail(record, 70))).split())
    assert text.startswith("● It was answered. HTTP 200.")
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        shown = {
            "at_ms": "2026-03-14 15:09:26 UTC",
            "outcome": "answered",
            "machines": "seen by 7:2, 8:0",
            "relays": "via relay 5:1",
            "targets": "7:2, 8:0",
            "paid": "1,234 microunits",
            "stream": "streamed",
            "choices": "2 answers",
            "code": "",
            "total_ms": "2400 ms",
            "load_ms": "1930 ms",
            "queue_ms": "3 ms",
            "first_token_ms": "2100 ms",
        }.get(field.name, str(value))
        assert shown in text, field.name


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (REFUSED, "It was refused before any work. HTTP 429."),
        (LEFT, "Its client left before the end. HTTP 499."),
        (FAILED, "It failed. HTTP 503."),
    ],
)
def test_outcomes_are_words(record: present.AuditRecord, said: str) -> None:
    lines = texts(present.detail(record, 70))
    assert said in lines[0]
    assert f"({record.code})" in lines[1]


def test_what_is_left_out_is_said_with_the_command_line() -> None:
    assert present.sign(AuditFilter(), 70) == ()
    assert texts(present.sign(AuditFilter(key="ann", outcome="failed"), 70)) == [
        "▲ Only key ann, outcome failed: esc shows everything.",
        "  relaydesk audit tail --key ann --outcome failed",
    ]


@pytest.mark.parametrize("width", [38, 56, 78])
def test_no_line_is_wider_than_the_detail(width: int) -> None:
    for record in (*AUDIT, *hostile_audit()):
        lines = (*present.detail(record, width), *present.sign(AuditFilter(key=record.key), width))
        assert all(line_width(line) <= width for line in lines)
