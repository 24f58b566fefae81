"""How much a relay does for others: open circuits, requests a minute of one client, bytes a month.

Each refusal is ``relay_busy``: a caller then takes another relay. Of a client its bucket is known, and how
many circuits it has open, but of neither which target they are for (design §6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.catalogue import WireError
from relaydesk.engine.relay.relaying.clients import Clients, Held, Rate, share
from relaydesk.engine.relay.relaying.meter import RelayMeter

GB: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Caps:
    """The operator's numbers. ``monthly_gb`` 0 is no cap; both directions count."""

    circuits: int = 256
    per_minute: int = 600
    monthly_gb: int = 0


class Circuits:
    """Admits and counts. `admit` and `take` raise `WireError` ``relay_busy``.

    ``key`` is that of `Clients`.
    """

    def __init__(self, clock: Clock, meter: RelayMeter, caps: Callable[[], Caps], key: bytes) -> None:
        self._meter = meter
        self._caps = caps
        self._rate = Rate(clock)
        self._held = Held()
        self.clients = Clients(key)
        self.open = 0

    def admit(self, address: str) -> str:
        """One more request of the client at ``address``; its name, for `take`."""
        client = self.clients.name(address)
        wait = self._rate.take(client, self._caps().per_minute)
        if wait:
            raise busy("too many requests from one address", wait)
        return client

    def take(self, client: str) -> None:
        """One circuit, to be given back by `release`."""
        caps = self._caps()
        if caps.monthly_gb and self._meter.this_month >= caps.monthly_gb * GB:
            raise busy("this relay has carried what it carries in a month", 3600)
        if self.open >= caps.circuits:
            raise busy("this relay has no circuit free")
        if self._held[client] >= share(caps.circuits):
            raise busy("too many circuits of one address are open")
        self._held.add(client)
        self.open += 1

    def carry(self, count: int) -> None:
        """Count bytes that went over an open circuit."""
        self._meter.add(count)

    def release(self, client: str, carried: int = 0) -> None:
        """Give a client's circuit back, with the bytes that are not counted yet."""
        self._held.drop(client)
        self.open -= 1
        if carried:
            self._meter.add(carried)


def busy(message: str, retry_after: int | None = None) -> WireError:
    """The refusal that makes a caller take another relay."""
    return WireError("relay_busy", message, retry_after=retry_after)
