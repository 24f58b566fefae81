"""From services' state to the view: which sections are stale, and building them once, when somebody looks.

Each section has one provider, a plain call that reads a service's state. Events only mark sections stale,
so a thousand events between two looks cost one build, and a node nobody watches builds nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from relaydesk.core.codec import fault_view
from relaydesk.core.errors import Fault, FaultError
from relaydesk.core.events import Event
from relaydesk.core.ports import Clock
from relaydesk.core.view.node_view import SECTIONS, NodeView, Update, loading_view
from relaydesk.core.view.sections import Section

_log: Final = logging.getLogger(__name__)

Provider = Callable[[], Any]


class Projector:
    """The node's current view."""

    def __init__(self, clock: Clock, providers: Mapping[str, Provider]) -> None:
        unknown = set(providers) - set(SECTIONS)
        if unknown:
            raise ValueError(f"no such sections: {sorted(unknown)}")
        self._clock = clock
        self._providers = dict(providers)
        self._view = loading_view(clock.wall_ms())
        self._stale = set(self._providers)
        self._seq = 0
        self._seq_of = dict.fromkeys(SECTIONS, 0)

    def take(self, event: Event) -> None:
        """Note that an event made its section stale; one without a provider stays ``loading``."""
        if event.section in self._providers:
            self._stale.add(event.section)

    def view(self, fresh: Collection[str] = SECTIONS) -> NodeView:
        """The view, with stale sections of ``fresh`` built anew."""
        due = [name for name in fresh if name in self._stale]
        if not due:
            return self._view
        self._seq += 1
        changes: dict[str, Any] = {}
        for name in due:
            self._stale.discard(name)
            changes[name] = self._built(name)
            self._seq_of[name] = self._seq
        self._view = self._view.replaced(Update(seq=self._seq, **changes))
        return self._view

    def since(self, seq: int, topics: Collection[str]) -> Update | None:
        """Sections of ``topics`` built after ``seq``, or None where nothing changed."""
        view = self.view(topics)
        changed: dict[str, Any] = {name: getattr(view, name) for name in topics if self._seq_of[name] > seq}
        return Update(seq=view.seq, **changed) if changed else None

    def _built(self, name: str) -> Section[Any]:
        now = self._clock.wall_ms()
        try:
            return Section(state="ready", as_of_ms=now, value=self._providers[name]())
        except FaultError as error:
            fault = error.fault
        except Exception:
            # A section that cannot be built must not take the others or the node with it.
            _log.exception("the view section %s could not be built", name)
            fault = Fault("internal_error", f"the section {name} could not be built", "see the log")
        last: Section[Any] = getattr(self._view, name)
        return Section(state="failed", as_of_ms=last.as_of_ms, value=last.value, fault=fault_view(fault))
