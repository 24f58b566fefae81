"""The names and addresses this machine has right now."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import psutil

from relaydesk.core.tls.names import Address, parse_address


@dataclass(frozen=True, slots=True)
class Machine:
    """``hostname`` as the system gives it (short or full), ``addresses`` of the interfaces that are up."""

    hostname: str
    addresses: frozenset[Address]


def this_machine() -> Machine:
    """Ask the system; a few milliseconds on machines with many interfaces, so not on the loop."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    found: set[Address] = set()
    for interface, entries in psutil.net_if_addrs().items():
        if interface not in up:
            continue
        for entry in entries:
            if entry.family in (socket.AF_INET, socket.AF_INET6):
                address = parse_address(entry.address)
                if address is not None and not address.is_unspecified:
                    found.add(address)
    return Machine(socket.gethostname(), frozenset(found))
