"""The log as rows."""

from __future__ import annotations

from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import LogLine, LogView
from relaydesk.surfaces.console.panes.log.present import detail, rows, sign, source_word
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS, sample


def test_rows_say_level_by_symbol_word_and_tone() -> None:
    made = rows(sample()["log"])
    assert [cell.text for cell in made[4].cells] == [
        "15:08:54",
        "▲ warn",
        "tls",
        "a client asked for the unknown name attic.local",
    ]
    assert [row.cells[1].tone for row in made[3:6]] == ["dim", "warn", "error"]


def test_levels_leave_out_what_is_below() -> None:
    log = sample()["log"]
    assert [len(rows(log, level)) for level in ("info", "warning", "error")] == [7, 2, 1]


def test_a_row_keeps_its_key_while_older_ones_go() -> None:
    lines = tuple(LogLine(NOW_MS + at // 3, "info", "x", safe_text(str(at))) for at in range(10))
    before = {row.cells[3].text: row.key for row in rows(LogView(lines))}
    after = {row.cells[3].text: row.key for row in rows(LogView(lines[3:]))}
    assert after.items() <= before.items()
    assert len(set(before.values())) == 10
    # The same at another level.
    assert {row.key for row in rows(LogView(lines), "info")} == set(before.values())


def test_detail_has_it_all() -> None:
    row = rows(sample()["log"])[5]
    assert ["".join(piece.text for piece in line) for line in detail(row)] == [
        "15:09:01  ✗ error",
        "engine.supervisor",
        "",
        "certificates failed: the disk is full",
    ]


def test_sources_are_short_words() -> None:
    words = {
        name: source_word(name)
        for name in ("engine.gateway.journal", "engine.pool", "surfaces.host", "asyncio")
    }
    assert list(words.values()) == ["requests", "models", "node", "asyncio"]
    assert source_word("enginex.y") == "y"


def test_what_the_level_leaves_out_is_said() -> None:
    assert sign("info", 0, 70) == ()
    assert texts(sign("error", 1, 70)) == ["▲ Only error and worse, 1 line left out: esc shows all."]
