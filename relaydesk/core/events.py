"""What happens inside a node. Services publish events; the projector learns from them what to show anew.

``section`` is the view section an event makes stale. A ``notable`` event is sent to watchers at once,
everything else waits for the next tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""

    section: ClassVar[str] = ""
    notable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class PhaseChanged(Event):
    """The node starts, is ready, drains or stops; or its listeners or certificate changed."""

    section: ClassVar[str] = "meta"
    notable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ModelChanged(Event):
    """A model was added, edited, removed, or its state changed."""

    section: ClassVar[str] = "models"
    notable: ClassVar[bool] = True
    name: str


@dataclass(frozen=True, slots=True)
class ModelProgress(Event):
    """A load moved on, or a queue grew or shrank."""

    section: ClassVar[str] = "models"
    name: str


@dataclass(frozen=True, slots=True)
class WorkerChanged(Event):
    """An engine started, became ready or ended."""

    section: ClassVar[str] = "workers"
    name: str


@dataclass(frozen=True, slots=True)
class RequestChanged(Event):
    """A request moved on."""

    section: ClassVar[str] = "requests"
    id: str


@dataclass(frozen=True, slots=True)
class KeysChanged(Event):
    """A key was made, rotated or revoked."""

    section: ClassVar[str] = "keys"
    notable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class KeysUsed(Event):
    """What keys have used, or have set aside, is another amount."""

    section: ClassVar[str] = "keys"


@dataclass(frozen=True, slots=True)
class HealthSampled(Event):
    """The gauges were read anew."""

    section: ClassVar[str] = "health"


@dataclass(frozen=True, slots=True)
class LogWritten(Event):
    """A log line was written."""

    section: ClassVar[str] = "log"


@dataclass(frozen=True, slots=True)
class AlertsChanged(Event):
    """An alert was raised or cleared."""

    section: ClassVar[str] = "alerts"
    notable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class JobChanged(Event):
    """A long command started or ended."""

    section: ClassVar[str] = "jobs"
    notable: ClassVar[bool] = True
    id: str


@dataclass(frozen=True, slots=True)
class JobProgress(Event):
    """A long command moved on."""

    section: ClassVar[str] = "jobs"
    id: str


@dataclass(frozen=True, slots=True)
class NetworkChanged(Event):
    """This node's place in the network changed: its listener, what is published, a directory."""

    section: ClassVar[str] = "network"
    notable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class NetworkUsed(Event):
    """This node relayed something for others."""

    section: ClassVar[str] = "network"


@dataclass(frozen=True, slots=True)
class RelaysChanged(Event):
    """What is known of other nodes changed."""

    section: ClassVar[str] = "relays"


@dataclass(frozen=True, slots=True)
class HopRecorded(Event):
    """An exchange through a relay ended."""

    section: ClassVar[str] = "hops"


@dataclass(frozen=True, slots=True)
class HopCheckChanged(Event):
    """The check of what stands in front of this node moved on, began or ended."""

    section: ClassVar[str] = "hopcheck"


@dataclass(frozen=True, slots=True)
class LedgerChanged(Event):
    """Something was booked, here or at a target that we pay."""

    section: ClassVar[str] = "ledger"
