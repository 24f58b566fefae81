"""What can be done with keys."""

from __future__ import annotations

from typing import Final

from relaydesk.core.commands import RotateDefaultKey, ShowDefaultKey
from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "keys.show",
        "v",
        "Key: show",
        "show",
        "show the default key, once, on this screen",
        "keys",
        cli="relaydesk token --api",
        command=ShowDefaultKey,
        footer=58,
    ),
    Action(
        "keys.rotate",
        "r",
        "Key: rotate",
        "rotate",
        "replace the default key",
        "keys",
        cli="relaydesk token --api --rotate",
        command=RotateDefaultKey,
        footer=56,
    ),
)
