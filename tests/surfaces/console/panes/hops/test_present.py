"""Hops as rows, and who was charged in words."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view.network import HopsView, HopView
from relaydesk.surfaces.console.panes.hops import present
from relaydesk.surfaces.console.panes.refs import short_ref
from relaydesk.surfaces.console.widgets.spans import line_text, line_width
from tests.surfaces.console.panes.network_scenes import hops, hostile_sections, ref
from tests.surfaces.console.panes.scenes import texts
from tests.surfaces.console.stage import NOW_MS

_KEYS = [column.key for column in present.COLUMNS]
HOPS = hops(NOW_MS)
ADA, DMITRI = short_ref(ref("ada")), short_ref(ref("dmitri"))


def _hop(rule: str) -> HopView:
    return next(hop for hop in HOPS.hops if hop.rule == rule)


def _said(hop: HopView, width: int = 76) -> list[str]:
    return texts(present.detail(hop, HOPS, width))


def test_a_row_says_it_all() -> None:
    row = present.rows(HOPS)[11]
    assert dict(zip(_KEYS, (cell.text for cell in row.cells), strict=True)) == {
        "time": "15:07:13",
        "purpose": "reserve",
        "relay": DMITRI,
        "target": ADA,
        "answer": "✗ 502",
        "marker": "✗",
        "charged": "relay",
        "took": "118 ms",
        "verdict": "relay failed",
        "attempt": "1",
        "rule": "unmarked_front_door",
        "id": row.key,
    }


@pytest.mark.parametrize(
    ("rule", "outcome", "sentence", "way"),
    [
        ("unmarked_front_door", "relay", f"✗ Relay {DMITRI} was charged.", "you ──✗ {relay} ┄┄┄ {target}"),
        ("no_answer", "relay", "✗ Relay {relay} was charged.", "you ──✗ {relay} ┄┄┄ {target}"),
        ("relay_refused", "relay", "✗ Relay {relay} was charged.", "you ──▸ {relay} ──✗ {target}"),
        ("target_unreachable", "target", "▲ Target {target} was charged: no relay reached it.",
         "you ──▸ {relay} ──✗ {target}"),
        ("marked", "target", "▲ Nobody was charged.", "you ──▸ {relay} ──✗ {target}"),
        ("unattributed", "unclear", "◐ Nobody was charged.", "you ──▸ {relay} ──? {target}"),
        ("caller_aborted", "stands", "○ Nobody was charged.", "you ──? {relay} ┄┄┄ {target}"),
        ("own_code", "answered", "● The target answered; nobody was charged.",
         "you ──▸ {relay} ──▸ {target}"),
    ],
)  # fmt: skip
def test_who_was_charged_and_where_the_way_broke(rule: str, outcome: str, sentence: str, way: str) -> None:
    hop = _hop(rule)
    ends = {"relay": short_ref(hop.relay), "target": short_ref(hop.target)}
    assert present.outcome(hop) == outcome
    lines = _said(hop)
    assert lines[0] == way.format(**ends)
    assert lines[2] == sentence.format(**ends)
    assert f"rule       {rule}" in lines


def test_the_rules_own_sentence_says_why() -> None:
    said = " ".join(" ".join(_said(_hop("unmarked_front_door"))).split())
    assert "The hop marker is missing, so something in front of the relay answered in its place." in said


def test_what_followed_and_what_went_before() -> None:
    lily = short_ref(ref("lena"))
    first, second = _hop("unmarked_front_door"), HOPS.hops[10]
    assert present.followed(first, HOPS) == (f"Then, 1882 ms later, {lily} was tried: 200.",)
    assert present.followed(second, HOPS) == (f"Try 2: before it {DMITRI} brought 502.",)
    assert present.followed(second, HopsView((second,))) == ("Try 2; those before it are not kept any more.",)
    assert present.followed(first, HopsView((first,))) == ("It may be tried again; no retry followed.",)
    # Another request to the same target is no retry of this one.
    other = msgspec.structs.replace(second, path="/v1/zs/inference")
    assert present.followed(first, HopsView((other, first))) == ("It may be tried again; no retry followed.",)


def test_failures_alone() -> None:
    shown = present.rows(HOPS, failures=True)
    assert 0 < len(shown) < len(HOPS.hops)
    assert all(not row.cells[_KEYS.index("answer")].text.startswith("●") for row in shown)


@pytest.mark.parametrize("width", [20, 40, 56, 78])
def test_no_line_is_wider_than_the_card(width: int) -> None:
    bad = hostile_sections(NOW_MS)["hops"]
    for view in (HOPS, bad):
        for hop in view.hops:
            lines = present.detail(hop, view, width)
            assert all(line_width(line) <= width for line in lines[1:])
            assert line_width(lines[0]) <= max(width, 38)


def test_the_way_has_a_twin_in_ascii() -> None:
    from relaydesk.surfaces.console.ascii import to_ascii

    assert "?" not in to_ascii(line_text(present.way(_hop("unmarked_front_door"), 60)))
