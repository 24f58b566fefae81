"""What can be done with relays."""

from __future__ import annotations

from relaydesk.surfaces.console.panes.relays.actions import ACTIONS
from relaydesk.surfaces.console.panes.relays.pane import RelaysPane


def test_what_sends_nothing_has_its_method_and_what_forgets_asks() -> None:
    for action in ACTIONS:
        assert action.command is not None or callable(getattr(RelaysPane, action.method))
    assert [action.id for action in ACTIONS if action.danger] == ["relays.forget"]
