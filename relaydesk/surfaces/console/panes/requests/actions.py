"""What the requests pane can do beyond every list."""

from __future__ import annotations

from typing import Final

from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "requests.slowest",
        "o",
        "Requests: slowest first",
        "slowest",
        "put the slowest first, or the newest again",
        "requests",
        footer=56,
    ),
    Action(
        "requests.failures",
        "e",
        "Requests: failures",
        "failures",
        "show only what failed or was broken off, or everything",
        "requests",
        footer=54,
    ),
)
