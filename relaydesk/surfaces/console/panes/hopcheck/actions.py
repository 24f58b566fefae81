"""How the wizard is opened, and what can be done in it."""

from __future__ import annotations

from typing import Final

from relaydesk.core.commands import CancelJob, CheckHop
from relaydesk.surfaces.console.action import Action

# The wizard's context: it is a screen, and no pane of the registry.
HOPCHECK: Final = "hopcheck"

OPEN: Final = Action(
    "network.check",
    "H",
    "Network: check my X-Zs-Relay-Hop passthrough",
    "check hop",
    "find what in front of this node takes its marker away, and what to change there",
    cli="relaydesk check-hop",
)
ACTIONS: Final = (
    Action(
        "hopcheck.run",
        "r",
        "Hop check: run",
        "run",
        "check every layer that is listed; after a change, check them again",
        HOPCHECK,
        cli="relaydesk check-hop URL",
        command=CheckHop,
        footer=90,
    ),
    Action(
        "hopcheck.add",
        "a",
        "Hop check: add a layer",
        "add layer",
        "name a proxy, tunnel or load balancer between, so that the guilty one can be told",
        HOPCHECK,
        cli="relaydesk check-hop URL --via LAYER=URL",
        footer=70,
    ),
    Action(
        "hopcheck.edit",
        "e",
        "Hop check: edit a layer",
        "edit",
        "give another URL for the selected layer",
        HOPCHECK,
        footer=65,
    ),
    Action(
        "hopcheck.remove",
        "x",
        "Hop check: remove a layer",
        "remove",
        "take the selected layer out of the check, or back to the URL that the node advertises",
        HOPCHECK,
        footer=60,
    ),
    Action(
        "hopcheck.long",
        "l",
        "Hop check: long silences",
        "long",
        "with long silences, which find idle time-outs and take minutes, or without",
        HOPCHECK,
        cli="relaydesk check-hop URL --long",
        footer=55,
    ),
    Action(
        "hopcheck.cancel",
        "X",
        "Hop check: cancel",
        "cancel",
        "end the check that runs; nothing is concluded from it",
        HOPCHECK,
        command=CancelJob,
        footer=85,
    ),
    Action(
        "hopcheck.next",
        "n",
        "Hop check: next finding",
        "next",
        "show the next finding",
        HOPCHECK,
        footer=70,
    ),
    Action(
        "hopcheck.before",
        "N",
        "Hop check: finding before",
        "before",
        "show the finding before",
        HOPCHECK,
    ),
    Action(
        "hopcheck.probes",
        "v",
        "Hop check: probes",
        "probes",
        "every probe at every layer, and what it saw",
        HOPCHECK,
        footer=60,
    ),
    Action(
        "hopcheck.change",
        "b",
        "Hop check: what is checked",
        "layers",
        "back to what is checked: layers and long silences",
        HOPCHECK,
        footer=65,
    ),
)
