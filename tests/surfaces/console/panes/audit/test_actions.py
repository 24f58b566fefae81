"""What the audit pane can do."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.audit.actions import ACTIONS


def test_looking_changes_no_node_and_every_filter_has_a_command_line() -> None:
    assert not any(action.writes for action in ACTIONS)
    assert all(action.cli.startswith("relaydesk audit tail --") for action in ACTIONS)
