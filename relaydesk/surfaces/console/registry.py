"""The panes there are: a folder each, and a line here."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from relaydesk.surfaces.console.action import Action
from relaydesk.surfaces.console.panes.audit.actions import ACTIONS as AUDIT
from relaydesk.surfaces.console.panes.hops.actions import ACTIONS as HOPS
from relaydesk.surfaces.console.panes.keys.actions import ACTIONS as KEYS
from relaydesk.surfaces.console.panes.ledger.actions import ACTIONS as LEDGER
from relaydesk.surfaces.console.panes.log.actions import ACTIONS as LOG
from relaydesk.surfaces.console.panes.models.actions import ACTIONS as MODELS
from relaydesk.surfaces.console.panes.overview.actions import ACTIONS as OVERVIEW
from relaydesk.surfaces.console.panes.relays.actions import ACTIONS as RELAYS
from relaydesk.surfaces.console.panes.requests.actions import ACTIONS as REQUESTS

if TYPE_CHECKING:
    from relaydesk.surfaces.console.pane import Pane


@dataclass(frozen=True, slots=True)
class PaneSpec:
    """A pane: ``digit`` opens it; ``sections`` are what it shows of a node, its main subject first.

    The folder ``panes/<id>`` holds ``pane.py`` with ``pane_class``, ``present.py``, ``actions.py``,
    ``help.md`` and ``pane.tcss``. The widget is imported when it is first looked at.
    """

    id: str
    digit: int
    title: str
    sections: tuple[str, ...]
    pane_class: str
    actions: tuple[Action, ...]
    cli: str

    def make(self) -> Pane:
        """A new widget of this pane."""
        module = importlib.import_module(f"relaydesk.surfaces.console.panes.{self.id}.pane")
        pane: Pane = getattr(module, self.pane_class)(self)
        return pane


_NODE: Final = ("models", "workers", "requests", "health", "meta", "alerts", "jobs")
_ALL: Final = (*_NODE, "network", "relays", "hopcheck")
PANES: Final = (
    PaneSpec("overview", 1, "Overview", _ALL, "OverviewPane", OVERVIEW, "relaydesk status"),
    PaneSpec(
        "models", 2, "Models", ("models", "jobs", "network"), "ModelsPane", MODELS, "relaydesk model list"
    ),
    PaneSpec("requests", 3, "Requests", ("requests",), "RequestsPane", REQUESTS, "relaydesk request list"),
    PaneSpec("keys", 4, "Keys and quotas", ("keys", "meta"), "KeysPane", KEYS, "relaydesk key list"),
    PaneSpec("log", 5, "Log", ("log",), "LogPane", LOG, "journalctl -u relaydesk"),
    PaneSpec("audit", 6, "Audit", ("meta",), "AuditPane", AUDIT, "relaydesk audit tail"),
    PaneSpec("relays", 7, "Relays", ("relays", "network"), "RelaysPane", RELAYS, "relaydesk relays"),
    PaneSpec("hops", 8, "Hops", ("hops", "network"), "HopsPane", HOPS, "relaydesk relays probe"),
    PaneSpec("ledger", 9, "Ledger", ("ledger", "network"), "LedgerPane", LEDGER, "relaydesk ledger balance"),
)


def pane_spec(pane_id: str) -> PaneSpec:
    """The pane of this id. Raises `KeyError`."""
    return _BY_ID[pane_id]


_BY_ID: Final = {spec.id: spec for spec in PANES}
