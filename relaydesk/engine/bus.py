"""Events from services to whoever listens.

Publishing never waits and never fails: a listener is a plain call made at once, and must only take note.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from relaydesk.core.events import Event

_log: Final = logging.getLogger(__name__)

Listener = Callable[[Event], None]


class Bus:
    """The node's event bus. All calls are made on the loop's thread."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._reporting = False

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every event from now on; the returned call ends that."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def publish(self, event: Event) -> None:
        """Tell every listener. One that raises is logged and does not stop the others."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                self._report(event)

    def _report(self, event: Event) -> None:
        # A log line is itself an event: a listener that fails on all of them must not be reported for ever.
        if self._reporting:
            return
        self._reporting = True
        try:
            _log.exception("a listener failed on %s", type(event).__name__)
        finally:
            self._reporting = False
