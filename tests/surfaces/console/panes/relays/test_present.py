"""Nodes of the network as rows."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.network import NetworkView, RelaysView, RelayView
from relaydesk.surfaces.console.panes.relays import present
from tests.surfaces.console.panes.network_scenes import hostile_sections, network, ref, relays
from tests.surfaces.console.stage import NOW_MS

_KEYS = [column.key for column in present.COLUMNS]
NETWORK, RELAYS = network(NOW_MS), relays(NOW_MS)


def _cells(name: str, now_ms: int = NOW_MS) -> dict[str, str]:
    row = next(row for row in present.rows(RELAYS, NETWORK, now_ms) if row.key == ref(name))
    return dict(zip(_KEYS, (cell.text for cell in row.cells), strict=True))


def _relay(name: str) -> RelayView:
    return next(each for each in RELAYS.relays if each.ref == ref(name))


def test_a_row_says_it_all() -> None:
    assert _cells("elena") == {
        "node": "7108…1133:1",
        "state": "● reachable",
        "rtt": "70 ms",
        "trend": "▄▄▄▄▄▄▄▄",
        "faults": "0/3",
        "share": "6.1 %",
        "via": "13",
        "why": "",
        "wire": "9.11",
        "models": "",
        "address": "elena.example",
        "ref": ref("elena"),
    }


def test_a_demoted_one_says_why_and_how_long_still() -> None:
    cells = _cells("dmitri")
    assert (cells["state"], cells["faults"], cells["why"]) == ("▲ demoted", "3/3", "7 min: 502")
    assert _cells("dmitri", NOW_MS + 7 * 60_000)["why"] == "47 s: 502"
    assert _cells("farid")["why"] == "58 s: no answer"
    assert _cells("kofi")["why"] == "was 502 no target"


@pytest.mark.parametrize(
    ("name", "state", "why"),
    [
        ("quinn", "○ unknown", "its certificate expired 3 days ago"),
        ("rosa", "✗ blocked", "blocked by this node's operator"),
        ("sam", "○ disabled", "its owner has switched it off"),
    ],
)
def test_what_is_not_used_says_why(name: str, state: str, why: str) -> None:
    cells = _cells(name)
    assert (cells["state"], cells["why"], cells["faults"], cells["via"]) == (state, why, "", "")


def test_too_few_relays_are_an_alert_by_mark_and_tone() -> None:
    via = _KEYS.index("via")
    found = {row.key: row.cells[via] for row in present.rows(RELAYS, NETWORK, NOW_MS)}
    assert (found[ref("ivan")].text, found[ref("ivan")].tone) == ("✗ 0", "error")
    assert (found[ref("hana")].text, found[ref("hana")].tone) == ("▲ 1", "warn")
    assert found[ref("ada")].tone == ""


def test_stale_details_count_where_they_are_more() -> None:
    stale = msgspec.structs.replace(_relay("ada"), faults=1, stale=2)
    (row,) = present.rows(RelaysView((stale,)), None, NOW_MS)
    assert row.cells[_KEYS.index("faults")].text == "2/3"


def test_this_node_comes_first_listed_or_not() -> None:
    first = present.rows(RELAYS, NETWORK, NOW_MS)[0]
    assert (first.key, first.cells[1].text) == (ref("attic"), "▸ this node")
    alone = msgspec.structs.replace(NETWORK, unpublished=safe_text("nobody admitted it"))
    (row,) = present.rows(RelaysView(), alone, NOW_MS)
    assert row.cells[_KEYS.index("why")].text == "nobody admitted it"
    (row,) = present.rows(RelaysView(), NetworkView(on=True), NOW_MS)
    assert row.key == "this node"
    assert present.rows(RelaysView(), NetworkView(), NOW_MS) == ()


def test_trouble_alone() -> None:
    shown = {row.key for row in present.rows(RELAYS, NETWORK, NOW_MS, trouble=True)}
    wanted = ("dmitri", "farid", "kofi", "pavel", "ivan", "hana", "quinn", "rosa", "sam", "tess")
    assert shown == {ref(name) for name in wanted}


def test_counts_are_of_what_may_be_chosen() -> None:
    assert present.counts(RELAYS) == {"all": 16, "reachable": 12, "cold": 2, "demoted": 2}


def test_what_nothing_changed_about_is_not_made_anew() -> None:
    before = {row.key: row for row in present.rows(RELAYS, NETWORK, NOW_MS)}
    after = {row.key: row for row in present.rows(RELAYS, NETWORK, NOW_MS + 1_000)}
    other = [key for key in before if after[key] is not before[key]]
    assert other == [ref("farid")]


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://a.example:1/x", "a.example:1"), ("/etc/x", "/etc/x"), ("http://[", "http://[")],
)
def test_hosts(url: str, host: str) -> None:
    assert present.host(url) == host


def test_hostile_text_makes_rows() -> None:
    bad = hostile_sections(NOW_MS)
    rows = present.rows(bad["relays"], bad["network"], NOW_MS)
    assert len(rows) == len(bad["relays"].relays) + 1
    assert all(len(row.cells) == len(_KEYS) for row in rows)


def test_off_names_the_setting() -> None:
    assert "RELAY_NETWORK=on" in present.OFF.action
