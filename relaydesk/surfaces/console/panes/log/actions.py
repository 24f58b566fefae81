"""What the log pane can do beyond every list."""

from __future__ import annotations

from typing import Final

from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "log.follow",
        "f",
        "Log: follow",
        "follow",
        "stay at the newest line, or stay where you are",
        "log",
        footer=55,
    ),
    Action(
        "log.level",
        "l",
        "Log: level",
        "level",
        "show everything, warnings and errors, or errors",
        "log",
        footer=45,
    ),
)
