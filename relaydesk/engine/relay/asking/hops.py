"""The newest exchanges of ours through relays. In memory only; what others ask of this node is never here."""

from __future__ import annotations

from collections import deque
from typing import Final

from relaydesk.core.events import HopRecorded
from relaydesk.core.view.network import HopsView, HopView
from relaydesk.engine.bus import Bus

LIMIT: Final = 200


class Hops:
    """A ring of hops that ended."""

    def __init__(self, bus: Bus, limit: int = LIMIT) -> None:
        self._bus = bus
        self._hops: deque[HopView] = deque(maxlen=limit)

    def add(self, hop: HopView) -> None:
        """Keep a hop; the oldest gives way."""
        self._hops.appendleft(hop)
        self._bus.publish(HopRecorded())

    def replace(self, hop: HopView) -> None:
        """Put ``hop`` in place of the one with its id, now that it is known who is charged."""
        for at, known in enumerate(self._hops):
            if known.id == hop.id:
                self._hops[at] = hop
                self._bus.publish(HopRecorded())
                return

    def view(self) -> HopsView:
        """All that are kept, newest first."""
        return HopsView(tuple(self._hops))
