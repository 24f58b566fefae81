"""The whole view of a node, and the updates that replace its sections."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import HopsView, NetworkView, RelaysView
from relaydesk.core.view.sections import (
    AlertsView,
    HealthView,
    JobsView,
    KeysView,
    LogView,
    MetaView,
    ModelsView,
    RequestsView,
    Section,
    WorkerView,
)


class WorkersView(msgspec.Struct, frozen=True):
    """All engines that are loaded or loading."""

    workers: tuple[WorkerView, ...] = ()


class Update(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sections that changed, each whole. The first update of a watch carries all of them.

    ``seq`` grows by any amount from one update to the next; a lost update does no harm, since the next
    one of the same section replaces it.
    """

    seq: int
    meta: Section[MetaView] | None = None
    models: Section[ModelsView] | None = None
    workers: Section[WorkersView] | None = None
    requests: Section[RequestsView] | None = None
    keys: Section[KeysView] | None = None
    health: Section[HealthView] | None = None
    log: Section[LogView] | None = None
    alerts: Section[AlertsView] | None = None
    jobs: Section[JobsView] | None = None
    network: Section[NetworkView] | None = None
    relays: Section[RelaysView] | None = None
    hops: Section[HopsView] | None = None
    ledger: Section[LedgerView] | None = None
    hopcheck: Section[HopCheckView] | None = None


class NodeView(msgspec.Struct, frozen=True):
    """Everything a front can know of a node at one moment."""

    seq: int
    meta: Section[MetaView]
    models: Section[ModelsView]
    workers: Section[WorkersView]
    requests: Section[RequestsView]
    keys: Section[KeysView]
    health: Section[HealthView]
    log: Section[LogView]
    alerts: Section[AlertsView]
    jobs: Section[JobsView]
    network: Section[NetworkView]
    relays: Section[RelaysView]
    hops: Section[HopsView]
    ledger: Section[LedgerView]
    hopcheck: Section[HopCheckView]

    def replaced(self, update: Update) -> NodeView:
        """This view with the update's sections in place of its own."""
        changes: dict[str, Any] = {
            name: section for name in SECTIONS if (section := getattr(update, name)) is not None
        }
        return msgspec.structs.replace(self, seq=update.seq, **changes)

    def as_update(self, topics: frozenset[str] | None = None) -> Update:
        """All sections (or those of ``topics``) as the first update of a watch."""
        chosen = SECTIONS if topics is None else [name for name in SECTIONS if name in topics]
        return Update(seq=self.seq, **{name: getattr(self, name) for name in chosen})


SECTIONS: Final[tuple[str, ...]] = tuple(field for field in NodeView.__struct_fields__ if field != "seq")


def loading_view(now_ms: int) -> NodeView:
    """A view of which nothing is known yet."""
    empty: dict[str, Any] = {name: Section(state="loading", as_of_ms=now_ms) for name in SECTIONS}
    return NodeView(seq=0, **empty)
