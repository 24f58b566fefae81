"""What the hops pane adds to every list."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.hops.actions import ACTIONS
from relaydesk.surfaces.console.panes.hops.pane import HopsPane


def test_what_sends_nothing_has_its_method() -> None:
    for action in ACTIONS:
        assert action.command is not None or callable(getattr(HopsPane, action.method))
