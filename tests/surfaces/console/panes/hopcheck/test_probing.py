"""Probes as a table, as one of them, and as how far they are."""

from __future__ import annotations

from relaydesk.core.view.hopcheck import ProbeState, ProbeView
from relaydesk.surfaces.console.panes.hopcheck import probing
from relaydesk.surfaces.console.widgets.spans import line_text, line_width
from tests.surfaces.console.panes.hopcheck.scenes import BAD, LAYERS, NOW_MS, STRIPPED, under_way

STATES: tuple[ProbeState, ...] = ("waiting", "running", "passed", "failed", "not_tested")


def test_every_state_has_a_symbol_and_a_word_of_its_own() -> None:
    assert set(probing.LOOKS) == set(STATES)
    assert len({look.mark for look in probing.LOOKS.values()}) == len(STATES)
    assert len({look.word for look in probing.LOOKS.values()}) == len(STATES)
    (line,) = probing.legend()
    assert line_text(line) == "● passed  ✗ failed  ◐ running  ○ waiting  – untested"
    assert line_width(line) <= 58


def test_every_probe_is_listed_once_with_its_state_at_every_layer() -> None:
    check = under_way(23)
    since = {(each.layer, each.id): NOW_MS - 3_000 for each in check.probes if each.state == "running"}
    rows = {row.key: row for row in probing.rows(LAYERS, check.probes, since, NOW_MS, 80)}
    assert set(rows) == {each.id for each in check.probes}
    texts = [cell.text for cell in rows["refusal"].cells]
    assert texts == ["the marker on a refusal", "● passed", "● passed", "○ waiting", "○ waiting"]
    assert rows["body"].cells[2].text == "◐ 3 s"
    # The node's own doors have no name to look up.
    assert [cell.text for cell in rows["name"].cells][1:] == ["", "", "", "○ waiting"]


def test_where_room_is_short_symbols_stand_alone() -> None:
    assert probing.worded(4, 80)
    assert not probing.worded(4, 60)
    check = under_way(23)
    rows = {row.key: row for row in probing.rows(LAYERS, check.probes, {}, NOW_MS, 60)}
    assert [cell.text for cell in rows["refusal"].cells][1:] == ["●", "●", "○", "○"]
    assert [column.title for column in probing.columns(LAYERS, 60)][1:] == [
        "LOOPBACK",
        "LAN",
        "NGINX",
        "PUBLIC",
    ]


def test_one_probe_says_what_it_saw_at_each_layer() -> None:
    text = [line_text(line) for line in probing.detail("refusal", BAD.layers, BAD.probes, {}, NOW_MS, 70)]
    assert text[0] == "The marker on a refusal"
    assert "● passed  loopback  14 ms" in text
    assert "✗ failed  nginx  14 ms" in text
    assert "  400 relay_bad_target without the marker." in text
    untested = [
        line_text(line) for line in probing.detail("silence-20", BAD.layers, BAD.probes, {}, NOW_MS, 70)
    ]
    assert "– not tested  loopback" in untested
    assert "  only with --long." in untested
    assert probing.detail("nothing", BAD.layers, BAD.probes, {}, NOW_MS, 70) == ()


def test_how_far_it_is_and_what_was_found() -> None:
    check = under_way(23)
    bar, found = probing.progress(check.probes, (), check.started_at_ms, NOW_MS, 78)
    assert line_text(bar).endswith("35%  23 of 65 probes ended, 1 s")
    assert line_text(found) == "Nothing was found so far."
    *_, found = probing.progress(check.probes, (STRIPPED, STRIPPED), check.started_at_ms, NOW_MS, 78)
    assert line_text(found) == "✗ Nginx removes X-Zs-Relay-Hop, and 1 more."
    (asked,) = probing.progress((), (), 0, NOW_MS, 78)
    assert line_text(asked) == "◐ The node is asked to begin."
    (bar, _) = probing.progress(check.probes, (), check.started_at_ms, NOW_MS, 78, ascii=True)
    assert line_text(bar).isascii()


def test_how_they_ended_in_numbers() -> None:
    rows = [ProbeView(str(at), "x", "t", state) for at, state in enumerate(STATES)]
    assert probing.counted(rows) == "1 passed, 1 failed, 1 not tested"
    assert probing.counted(()) == ""
