"""What can be done with relays and their operators."""

from __future__ import annotations

from typing import Final

from relaydesk.core.commands import BlockOperator, ForgetOperator, ProbeRelays, TrustOperator
from relaydesk.surfaces.console.action import Action

ACTIONS: Final = (
    Action(
        "relays.probe",
        "r",
        "Relay: probe",
        "probe",
        "ask the selected node through relays how it does",
        "relays",
        cli="relaydesk relays probe NAME",
        command=ProbeRelays,
        footer=59,
    ),
    Action(
        "relays.probe-all",
        "R",
        "Relays: probe all",
        "probe all",
        "ask every node through relays how it does",
        "relays",
        cli="relaydesk relays probe",
        command=ProbeRelays,
        footer=45,
    ),
    Action(
        "relays.trouble",
        "e",
        "Relays: trouble",
        "trouble",
        "show only what wants a look, or everything",
        "relays",
        footer=58,
    ),
    Action(
        "relays.trust",
        "T",
        "Operator: trust",
        "trust",
        "use the nodes of the selected one's operator, whatever directories say",
        "relays",
        cli="relaydesk operators trust NAME",
        command=TrustOperator,
        footer=34,
    ),
    Action(
        "relays.block",
        "B",
        "Operator: block",
        "block",
        "never use the nodes of the selected one's operator",
        "relays",
        cli="relaydesk operators block NAME",
        command=BlockOperator,
        footer=35,
    ),
    Action(
        "relays.forget",
        "F",
        "Operator: forget",
        "forget",
        "take back what was decided about the selected one's operator",
        "relays",
        cli="relaydesk operators forget NAME",
        command=ForgetOperator,
        footer=33,
    ),
)
