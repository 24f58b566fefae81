"""One node as a card."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view.network import RelayView
from relaydesk.surfaces.console.panes.relays import detail
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.network_scenes import hostile_sections, owner, ref, relays
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

RELAYS = relays(NOW_MS)


def _relay(name: str) -> RelayView:
    return next(each for each in RELAYS.relays if each.ref == ref(name))


def _said(name: str, now_ms: int = NOW_MS, width: int = 76) -> list[str]:
    return texts(detail.lines(_relay(name), now_ms, width))


def test_why_it_is_demoted_until_when_and_by_what_evidence() -> None:
    lines = _said("dmitri")
    assert lines[0] == "▲ demoted, 7:47 left, until 15:17:13"
    assert " ".join(" ".join(lines[1:4]).split()).startswith(
        "Demoted since 15:07:13 until 15:17:13 UTC: 3 failures in a row, the last for"
    )
    at = lines.index("Evidence  newest first")
    assert [line.split()[:4] for line in lines[at + 1 : at + 4]] == [
        ["15:07:13", "502", "✗", "unmarked"],
        ["15:06:02", "520", "✗", "unmarked"],
        ["15:04:15", "502", "✗", "unmarked"],
    ]
    assert lines[at + 1].endswith(f"for {ref('ada')}")
    # What is one rule's is said once.
    assert sum(line.startswith("  The hop marker is missing") for line in lines) == 1


def test_the_time_left_counts_down() -> None:
    assert _said("dmitri", NOW_MS + 60_000)[0].startswith("▲ demoted, 6:47 left")
    assert _said("dmitri", NOW_MS + 467_500)[0] == "▲ demoted, about to end"
    assert _said("ada")[0] == "● reachable"


def test_ids_stand_whole() -> None:
    lines = _said("dmitri")
    assert f"node       {ref('dmitri')}" in lines
    assert f"owner      {owner('dmitri')}" in lines
    assert lines[-1] == f"shell      relaydesk relays probe {ref('dmitri')}"


def test_few_relays_and_none() -> None:
    assert "▲ Reached through one relay only." in _said("hana")
    assert "✗ No relay reaches it: nothing can be asked of it." in _said("ivan")
    assert "○ None was measured yet." in _said("ivan")


def test_what_is_not_used_has_no_counts() -> None:
    lines = _said("quinn")
    assert lines[:2] == ["○ unknown", "  Its certificate expired 3 days ago."]
    assert not any(line.startswith(("draw", "Round trips", "Evidence")) for line in lines)
    assert " ".join(lines[-2:]).split()[:4] == ["shell", "relaydesk", "operators", "trust"]


def test_stale_details_are_told() -> None:
    stale = msgspec.structs.replace(_relay("ada"), stale=2)
    assert "stale      2/3 details in a row" in texts(detail.lines(stale, NOW_MS, 60))


def test_the_chart_is_as_wide_as_there_is_room_and_has_a_twin() -> None:
    lines = detail.latency(_relay("elena"), 76)
    assert texts(lines[:1]) == ["Round trips  70 ms now, 64 to 139 ms, last 60"]
    assert [line_width(line) for line in lines[1:]] == [76] * 5
    assert all(text.isascii() for text in texts(detail.latency(_relay("elena"), 40, ascii=True)))


@pytest.mark.parametrize("width", [40, 56, 78])
def test_no_line_is_wider_than_the_card(width: int) -> None:
    for each in (*RELAYS.relays, *hostile_sections(NOW_MS)["relays"].relays):
        assert all(line_width(line) <= width for line in detail.lines(each, NOW_MS, width))
