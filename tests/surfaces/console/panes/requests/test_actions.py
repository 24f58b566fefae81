"""What the requests pane adds to every list."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.requests.actions import ACTIONS
from relaydesk.surfaces.console.panes.requests.pane import RequestsPane


def test_every_action_has_its_method() -> None:
    assert all(callable(getattr(RequestsPane, action.method)) for action in ACTIONS)
    assert all(action.command is None for action in ACTIONS)
