"""What the audit pane can do beyond every list: leave records out."""

from __future__ import annotations

from typing import Final

from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "audit.outcome",
        "e",
        "Audit: outcome",
        "outcome",
        "only what failed, then cancelled, refused, done, then everything",
        "audit",
        cli="relaydesk audit tail --outcome failed",
        footer=57,
    ),
    Action(
        "audit.key",
        "u",
        "Audit: this key",
        "this key",
        "only the key of the selected record, or every key again",
        "audit",
        cli="relaydesk audit tail --key NAME",
        footer=56,
    ),
    Action(
        "audit.model",
        "m",
        "Audit: this model",
        "this model",
        "only the model of the selected record, or every model again",
        "audit",
        cli="relaydesk audit tail --model NAME",
        footer=55,
    ),
)
