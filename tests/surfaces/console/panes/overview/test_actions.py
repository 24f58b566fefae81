"""The overview's only action."""

from __future__ import annotations

from relaydesk.core.commands import PullModel
from relaydesk.surfaces.console.panes.overview.actions import ACTIONS


def test_the_first_model_is_a_key_away() -> None:
    (pull,) = ACTIONS
    assert (pull.keys, pull.command, pull.cli) == ("a", PullModel, "relaydesk model pull smollm2")
