"""Whether the check can be had, where it begins, and what a key may do."""

from __future__ import annotations

import pytest

from relaydesk.core.view.node_view import loading_view
from relaydesk.core.view.sections import Section
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.panes.hopcheck import standing
from relaydesk.surfaces.console.panes.hopcheck.plan import Entry
from relaydesk.surfaces.console.panes.hopcheck.standing import There, first_step, reason, steps
from relaydesk.surfaces.console.states import PaneState
from tests.surfaces.console.panes.hopcheck.scenes import (
    CLEAN,
    FAILING,
    FOUND,
    IDLE,
    NOW_MS,
    replace,
    under_way,
)
from tests.surfaces.console.panes.network_scenes import sections
from tests.surfaces.console.stage import sample

LIVE = Link("live")


def _view(**values: object) -> object:
    view = loading_view(NOW_MS)
    ready = {name: Section("ready", NOW_MS, value) for name, value in values.items()}
    return replace(view, **ready)


def _state(link: Link = LIVE, **values: object) -> PaneState:
    return standing.state(_view(**values), link)  # type: ignore[arg-type]


def test_a_node_that_does_not_know_the_check_is_told_from_one_that_has_not_answered() -> None:
    assert _state(Link("connecting")).kind == "loading"
    old = _state(meta=sample()["meta"])
    assert old.notice == standing.OLD
    assert old.covers


def test_off_the_network_it_is_said_what_to_do() -> None:
    off = _state(meta=sample()["meta"], hopcheck=IDLE, network=sample()["network"])
    assert off.covers
    assert off.notice is not None
    assert "set RELAY_NETWORK=on" in off.notice.action
    assert not _state(hopcheck=IDLE, **sections(NOW_MS)).covers


def test_where_it_begins() -> None:
    assert first_step(IDLE) == "layers"
    assert first_step(under_way(3)) == "probes"
    assert first_step(FOUND) == "result"
    assert first_step(CLEAN) == "result"
    # What the node saw by itself since is worse than what the operator knows.
    assert first_step(replace(CLEAN, schedule=FAILING)) == "layers"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_strip_names_the_steps_and_fills_the_line(width: int) -> None:
    pieces = steps("probes", width)
    text = "".join(piece.text for piece in pieces)
    assert "1 Layers" in text
    assert "3 Result" in text
    assert [piece.text for piece in pieces if piece.tone == "pill"] == [" 2 Probes "]
    assert len(text) == width


MINE = Entry("nginx", "http://127.0.0.1:8080", "via", "given here", mine=True)
OWN = Entry("loopback", "http://127.0.0.1:8384", "loopback", "found")
OUTER = Entry("public", "https://node.example.org", "public", "advertised")


@pytest.mark.parametrize(
    ("verb", "there", "said"),
    [
        ("run", There("layers", target=True), ""),
        ("run", There("layers"), "no public URL is known: e gives one"),
        ("run", There("result", target=True, running=True), "a check is running"),
        ("edit", There("layers", target=True, entry=MINE), ""),
        ("edit", There("layers", target=True, entry=OUTER), ""),
        ("edit", There("layers", target=True, entry=OWN), "the node found it itself, and always asks it"),
        ("edit", There("layers", entry=OWN), ""),
        ("remove", There("layers", target=True, entry=MINE), ""),
        ("remove", There("layers", target=True, entry=OWN), "the node found it itself, and always asks it"),
        (
            "remove",
            There("layers", target=True, entry=OUTER),
            "it is what the node advertises: e gives another",
        ),
        ("remove", There("layers"), "no layer is selected"),
        ("long", There("probes"), "b goes back to the layers"),
        ("cancel", There("probes", running=True), ""),
        ("cancel", There("probes"), "no check is running"),
        ("next", There("result", many=True), ""),
        ("next", There("result"), "there is nothing else"),
        ("next", There("probes", many=True), "there is no result here"),
        ("probes", There("layers"), "no check was made yet"),
        ("probes", There("layers", report=True), ""),
        ("change", There("layers"), "they are shown"),
        ("change", There("result"), ""),
    ],
)
def test_why_not(verb: str, there: There, said: str) -> None:
    assert reason(f"hopcheck.{verb}", there) == said
