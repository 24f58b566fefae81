"""Where a model goes, and the three refusals of the hub's API when it goes nowhere.

The texts are the API's own, to the letter; clients and scripts match on them. Their "MB" are MiB, the need
rounded up and what is free rounded down, so that a refusal never shows a need that is not above the room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relaydesk.core.errors import Fault
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.pool.memory import MIB, mib_down, mib_up

HOST: Final = "host"
NOWHERE: Final = ""


@dataclass(frozen=True, slots=True)
class Room:
    """Memory in bytes that the pool has for one model.

    ``pool_total`` is what the pool could ever free, ``aggregate_free`` what could take part in a shard. While
    the pool is one machine that is the host's own memory, and no node has anything.
    """

    host_free: int
    pool_total: int
    best_node_free: int = 0
    aggregate_free: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """``where`` is ``"host"``, or empty for nowhere, and then ``fault`` says why."""

    where: str
    fault: Fault | None = None


def place(report: FitReport, *, host_only: bool = False) -> Placement:
    """Where a model would go if it were loaded now."""
    if report.fits:
        return Placement(HOST)
    room = Room(host_free=report.free_mib * MIB, pool_total=report.total_mib * MIB)
    return Placement(NOWHERE, refusal(report.model, report.need_mib * MIB, room, host_only=host_only))


def refusal(model: str, need: int, room: Room, *, host_only: bool = False) -> Fault:
    """The 503 for a model that fits nowhere.

    More than the pool could ever free comes first: no waiting and no privacy setting changes that.
    """
    need_mb = mib_up(need)
    host_mb = mib_down(room.host_free)
    if need_mb > mib_down(room.pool_total):
        text = (
            f'"{model}" needs about {need_mb} MB and the whole pool tops out at '
            f"{mib_down(room.pool_total)} MB"
        )
    elif host_only:
        text = (
            f'"{model}" is host-only (a privacy setting — it never leaves this hub, not even as a shard): '
            f"needs about {need_mb} MB VRAM, the host has {host_mb} MB free — free VRAM on the host or pick "
            "a smaller/more-quantized model"
        )
    else:
        aggregate = room.host_free if room.aggregate_free is None else room.aggregate_free
        text = (
            f'"{model}" needs about {need_mb} MB VRAM: the host has {host_mb} MB free, the best node has '
            f"{mib_down(room.best_node_free)} MB free, and the pool aggregate ({mib_down(aggregate)} MB) is "
            "not enough to shard it either — free VRAM, add a node, or pick a smaller/more-quantized model"
        )
    return Fault("model_unavailable", text)
