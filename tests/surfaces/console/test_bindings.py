"""The table of actions: no clash, nothing reserved, everything carried out, documents up to date."""

from __future__ import annotations

import os
from collections import Counter
from importlib.resources import files

import pytest

from relaydesk.core.commands import CancelJob
from relaydesk.surfaces.cli.main import VERBS
from relaydesk.surfaces.console.action import ANYWHERE, LIST, Action, key_name
from relaydesk.surfaces.console.bindings import TABLE, active, bindings_for, keys_document
from relaydesk.surfaces.console.frame_actions import FrameActions
from relaydesk.surfaces.console.keymap import RESERVED, clashes
from relaydesk.surfaces.console.panes.hopcheck.actions import HOPCHECK
from relaydesk.surfaces.console.panes.hopcheck.screen import HopCheck
from relaydesk.surfaces.console.registry import PANES
from tests.support.tree import SOURCE

KEYS_PAGE = SOURCE / "docs" / "keys.md"


def test_ids_and_titles_are_one_each() -> None:
    assert all(count == 1 for count in Counter(action.id for action in TABLE).values())
    assert all(count == 1 for count in Counter(action.title for action in TABLE).values())


def test_no_two_actions_have_one_key() -> None:
    assert clashes(TABLE) == []


def test_no_key_is_tmuxs_or_a_move_or_the_confirming_one() -> None:
    for action in TABLE:
        keys = {key.strip() for key in action.keys.split(",")}
        assert not keys & RESERVED, action.id
    assert {"ctrl+b", "y", "enter", "escape"} <= RESERVED


@pytest.mark.parametrize("action", TABLE, ids=lambda action: action.id)
def test_every_action_is_whole_and_carried_out(action: Action) -> None:
    assert action.help
    assert not action.help.endswith(".")
    assert action.label == action.label.lower() or action.area == "pane"
    assert action.keys or ":" in action.title
    if action.command is not None:
        # What changes a node can be done without a console too; the line that waits for a job ends with ^C.
        assert action.cli or action.command is CancelJob
    elif action.area != "pane":
        panes = {spec.id: type(spec.make()) for spec in PANES}
        screens = {**panes, HOPCHECK: HopCheck}
        owners = [FrameActions, *([screens[action.where]] if action.where in screens else panes.values())]
        assert any(hasattr(owner, action.method) for owner in owners), action.method


@pytest.mark.parametrize("action", [each for each in TABLE if each.cli], ids=lambda action: action.id)
def test_command_lines_name_verbs_there_are(action: Action) -> None:
    words = action.cli.split()
    if words[0] == "relaydesk":
        assert words[1] in {verb.name for verb in VERBS}
    else:
        assert words[0] in {"journalctl", "kill"}


def test_panes_have_digits_in_order_and_their_files() -> None:
    assert [spec.digit for spec in PANES] == sorted({spec.digit for spec in PANES})
    for spec in PANES:
        folder = files("relaydesk.surfaces.console.panes") / spec.id
        assert (folder / "help.md").read_text(encoding="utf-8").startswith(f"# {spec.title}\n")
        assert all(action.where == spec.id for action in spec.actions)


def test_where_there_is_no_list_its_keys_are_not_offered() -> None:
    assert any(action.where == LIST for action in active("log"))
    assert not any(action.where == LIST for action in active("log", has_list=False))
    assert all(action.where in (ANYWHERE, "log") for action in active("log", has_list=False))


def test_bindings_carry_the_ids_that_remapping_needs() -> None:
    made = bindings_for(ANYWHERE)
    assert {binding.id for binding in made} == {  # type: ignore[union-attr]
        action.id for action in TABLE if action.where == ANYWHERE and action.keys
    }


@pytest.mark.parametrize(
    ("keys", "name"),
    [("ctrl+p", "^p"), ("question_mark", "?"), ("q,ctrl+q", "q ^q"), ("escape", "esc"), ("S", "S")],
)
def test_key_names(keys: str, name: str) -> None:
    assert key_name(keys) == name


def test_the_page_of_keys_is_the_table() -> None:
    text = keys_document()
    if os.environ.get("RELAYDESK_UPDATE_SCREENS") == "1":
        KEYS_PAGE.write_text(text, encoding="utf-8")
    assert KEYS_PAGE.read_text(encoding="utf-8") == text
