"""Strip, tabs and footer at every width."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relaydesk.core.commands import Access, RotateDefaultKey, ShowConfig
from relaydesk.core.text import safe_text
from relaydesk.core.view.node_view import NodeView, Update, loading_view
from relaydesk.core.view.sections import MetaView, Section
from relaydesk.surfaces.console import chrome
from relaydesk.surfaces.console.action import ANYWHERE, LIST, Action
from relaydesk.surfaces.console.bindings import BY_ID, TABLE
from relaydesk.surfaces.console.chrome import Offer
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.pieces import Piece
from relaydesk.surfaces.console.registry import PANES
from tests.surfaces.console.stage import NOW_MS, sample

LIVE = Link("live")


def _view() -> NodeView:
    values = {name: Section("ready", NOW_MS, value) for name, value in sample().items()}
    return loading_view(NOW_MS).replaced(Update(1, **values))


def _text(pieces: tuple[Piece, ...]) -> str:
    return "".join(piece.text for piece in pieces)


def _offers(places: set[str]) -> list[Offer]:
    return [Offer(action, action.keys, action.label) for action in TABLE if action.where in places]


@pytest.mark.parametrize("width", range(1, 160))
def test_no_line_is_ever_too_long(width: int) -> None:
    strip = chrome.strip(_view(), LIVE, "EMBEDDED", True, NOW_MS, width)
    tabs = chrome.tabs(PANES, PANES[0].id, width)
    feet = [
        chrome.footer(_offers({ANYWHERE, LIST, spec.id}), width, ("enter", "detail", "app.open"))
        for spec in PANES
    ]
    # More than any place offers, the wizard's own among them.
    every = chrome.footer(_offers({each.where for each in TABLE}), width, ("enter", "detail", "app.open"))
    for line in (strip, tabs, every, *feet):
        assert sum(piece.width for piece in line) <= width
    if width >= 60:
        assert "EMBEDDED" in _text(strip)
        assert "1 alert" in _text(strip)
        assert all(f" {spec.digit} " in _text(tabs) for spec in PANES)
        for line in feet:
            assert all(word in _text(line) for word in ("help", "palette", "quit", "filter"))


def test_strip_drops_what_matters_least() -> None:
    shown = [_text(chrome.strip(_view(), LIVE, "ATTACHED", False, NOW_MS, width)) for width in (120, 80, 60)]
    assert "node 5f2d7c0e   up 3 h 12 min   in flight 2 +1 queued   tokens/s 42   lag 1 ms" in shown[0]
    assert "node" not in shown[1]
    assert "lag 1 ms" in shown[1]
    assert "lag" not in shown[2]
    assert "tokens/s 42" in shown[2]


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (Link(), "◐ connecting"),
        (Link("lost", 1, safe_text("it went"), safe_text(""), 4.0), "▲ no node, next try within 4 s"),
        (Link("lost", 1), "▲ no node, trying"),
        (Link("lost", 1, code="conflict"), "▲ another version: restart node and console"),
    ],
)
def test_strip_claims_nothing_it_does_not_know(link: Link, said: str) -> None:
    text = _text(chrome.strip(_view(), link, "ATTACHED", False, NOW_MS, 120))
    assert said in text
    assert "in flight" not in text
    assert "up " not in text
    assert text.rstrip().endswith("alerts unknown")


def test_strip_says_when_the_node_drains_and_when_it_is_paused() -> None:
    meta = sample()["meta"]
    assert isinstance(meta, MetaView)
    view = _view().replaced(
        Update(2, meta=Section("ready", 1, MetaView(meta.node, "", 1, NOW_MS, "draining")))
    )
    text = _text(chrome.strip(view, LIVE, "EMBEDDED", True, NOW_MS, 100))
    assert "▲ draining" in text
    assert "▲ paused" in text


def test_tabs_keep_every_number_where_names_do_not_fit() -> None:
    text = _text(chrome.tabs(PANES, PANES[-1].id, 44))
    assert PANES[-1].title in text
    assert all(str(spec.digit) in text for spec in PANES)


def test_tabs_stand_closer_before_they_lose_their_names() -> None:
    text = _text(chrome.tabs(PANES[:9], PANES[1].id, 78))
    assert text == " 1 Overview 2 Models  3 Requests 4 Keys 5 Log 6 Audit 7 Relays 8 Hops 9 Ledger"


def test_footer_greys_what_cannot_be_done_and_says_what_enter_does() -> None:
    filter_, quit_ = BY_ID["list.filter"], BY_ID["app.quit"]
    offers = [Offer(filter_, "slash", "filter", "nothing to filter"), Offer(quit_, "q,ctrl+q", "quit")]
    line = chrome.footer(offers, 60, ("enter", "detail", "app.open"))
    assert _text(line).split() == ["enter", "detail", "/", "filter", "q", "quit"]
    tones = {piece.text: piece.tone for piece in line}
    assert tones["/"] == tones["filter"] == "faint"
    assert tones["q"] == "accent"
    assert {piece.do for piece in line if piece.do} == {
        "app.open",
        "app.run('list.filter')",
        "app.run('app.quit')",
    }


def test_what_undoes_something_in_force_stays_in_the_footer() -> None:
    pause = BY_ID["view.pause"]
    many = [
        Offer(replace(pause, id=f"x.{at}", label=f"other{at}", footer=60), "x", f"other{at}")
        for at in range(9)
    ]
    assert "go on" in _text(chrome.footer([*many, Offer(pause, "p", "go on")], 60))
    assert "pause" not in _text(chrome.footer([*many, Offer(pause, "p", "pause")], 60))


def test_refusals() -> None:
    write = Action("x.w", "w", "X: w", "w", "w", cli="x", command=RotateDefaultKey)
    read = Action("x.r", "r", "X: r", "r", "r", cli="x", command=ShowConfig)
    assert chrome.refusal(write, LIVE, Access.READ) == "this console is read-only"
    assert chrome.refusal(read, LIVE, Access.READ) == ""
    assert chrome.refusal(write, LIVE, Access.WRITE) == ""
    assert chrome.refusal(read, Link("lost"), Access.WRITE) == "there is no node to ask"
    assert chrome.refusal(BY_ID["view.retry"], LIVE, Access.WRITE) == "the node is there"


def test_an_uptime_stands_still_within_a_minute() -> None:
    assert {chrome.duration_short(60 + extra) for extra in range(60)} == {"1 min"}
    assert chrome.duration_short(59) == "59 s"
