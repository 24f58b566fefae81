"""What the hops pane can do beyond every list."""

from __future__ import annotations

from typing import Final

from relaydesk.core.commands import ProbeRelays
from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "hops.failures",
        "e",
        "Hops: failures",
        "failures",
        "show only hops that brought no answer of their target, or everything",
        "hops",
        footer=58,
    ),
    Action(
        "hops.probe",
        "r",
        "Hops: probe all",
        "probe all",
        "ask every node through relays how it does",
        "hops",
        cli="relaydesk relays probe",
        command=ProbeRelays,
        footer=56,
    ),
)
