"""What a pane says, by its section and the link."""

from __future__ import annotations

from typing import Any

import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import FaultView, LogView, Section
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import READY, Notice, clock_time, pane_state
from tests.surfaces.console.stage import NOW_MS

FAULT = FaultView("storage_failed", safe_text("the disk is full"), safe_text("make room"))
LIVE, LOST = Link("live"), Link("lost", 1, safe_text("the node went away"), safe_text("start it"))
EMPTY = Notice("Nothing yet.", "do something")


OTHER = Link(
    "lost",
    1,
    safe_text("console and node are different versions"),
    safe_text("restart both"),
    code="conflict",
)


@pytest.mark.parametrize(
    ("state", "value", "fault", "link", "empty", "kind", "covers", "words"),
    [
        ("loading", None, None, LIVE, None, "loading", True, "first answer"),
        ("loading", None, None, LOST, None, "failed", True, "No node: the node went away."),
        ("failed", None, FAULT, LIVE, None, "failed", True, "Log cannot be read: the disk is full."),
        ("failed", LogView(), FAULT, LIVE, None, "failed", False, "as of 15:09:26: the disk is full"),
        ("ready", LogView(), None, LOST, None, "stale", False, "as of 15:09:26: the node went away"),
        ("failed", LogView(), FAULT, LOST, None, "stale", False, "the node went away"),
        ("ready", LogView(), None, LIVE, EMPTY, "empty", True, "Nothing yet."),
        ("ready", LogView(), None, LOST, EMPTY, "stale", True, "the node went away"),
        ("loading", None, None, OTHER, None, "failed", True, "Console and node are different versions."),
        ("ready", LogView(), None, OTHER, None, "stale", False, "console and node are different versions"),
    ],
)
def test_every_state_is_a_sentence_and_a_next_action(
    state: Any, value: Any, fault: Any, link: Link, empty: Any, kind: str, covers: bool, words: str
) -> None:
    found = pane_state("Log", Section(state, NOW_MS, value, fault), link, empty)
    assert (found.kind, found.covers) == (kind, covers)
    assert found.notice is not None
    assert words in found.notice.sentence
    assert found.notice.action
    assert found.tone in MARKS


def test_where_all_is_well_nothing_is_said() -> None:
    assert pane_state("Log", Section("ready", 1, LogView()), LIVE, None) == READY


def test_clock() -> None:
    assert clock_time(NOW_MS) == "15:09:26"
