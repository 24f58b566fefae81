"""What can be done with keys."""

from __future__ import annotations

from typing import Final

from relaydesk.core.commands import AddKey, RemoveKey, RotateDefaultKey, SetKey, ShowDefaultKey
from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "keys.add",
        "a",
        "Key: add",
        "add",
        "make a key of its own name and limits; its secret is shown once",
        "keys",
        cli="relaydesk key add NAME OPTIONS",
        command=AddKey,
        footer=59,
    ),
    Action(
        "keys.edit",
        "w",
        "Key: change",
        "change",
        "change limits, models and expiry of the selected key",
        "keys",
        cli="relaydesk key set NAME OPTIONS",
        command=SetKey,
        footer=58,
    ),
    Action(
        "keys.revoke",
        "x",
        "Key: revoke",
        "revoke",
        "end the selected key at once",
        "keys",
        cli="relaydesk key rm NAME",
        command=RemoveKey,
        footer=57,
    ),
    Action(
        "keys.show",
        "v",
        "Key: show",
        "show",
        "show the default key on this screen",
        "keys",
        cli="relaydesk token --api",
        command=ShowDefaultKey,
        footer=56,
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
        footer=35,
    ),
)
