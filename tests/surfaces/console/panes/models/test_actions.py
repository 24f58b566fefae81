"""What can be done with models, and that the command lines beside it exist."""

from __future__ import annotations

from relaydesk.surfaces.cli.verbs import paths
from relaydesk.surfaces.console.panes.models.actions import ACTIONS


def test_every_command_line_is_one_of_the_programs() -> None:
    known = set(paths())
    for action in ACTIONS:
        if action.cli:
            assert " ".join(action.cli.split()[1:3]) in known, action.id


def test_what_cannot_be_undone_is_a_danger() -> None:
    dangers = {action.id for action in ACTIONS if action.danger}
    assert dangers == {"models.unload", "models.remove"}


def test_keys_are_its_own() -> None:
    keys = [action.keys for action in ACTIONS]
    assert len(set(keys)) == len(keys)
