"""A kept directory with a client of its own, over a folder and real sockets."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from relaydesk.engine.relay.directory.keeper import Keeper
from relaydesk.engine.relay.directory.shelf import Shelf
from relaydesk.engine.relay.outbound.outbound import Outbound
from tests.support.clock import FakeClock, FakeRng
from tests.support.directory_rig import no_tls
from tests.support.directory_world import ANN, NOW, Key, certificate, record
from tests.support.lab_relay import LabNode

ADMITTED = (ANN,)


@asynccontextmanager
async def keeping(
    folder: Path,
    *admitted: Key,
    clock: FakeClock | None = None,
    lab: bool = True,
    tls: Callable[[], ssl.SSLContext] = no_tls,
    **options: Any,
) -> AsyncIterator[tuple[Keeper, Shelf]]:
    """A keeper that is open, admitting ``admitted``."""
    clock = clock or FakeClock(NOW * 1000)
    shelf = Shelf(folder)
    if not shelf.exists():
        shelf.create("test", FakeRng("directory"))
    for each in admitted:
        shelf.admit(each.address, "active")
    outbound = Outbound(clock, allow_private=lambda: lab, tls=tls)
    keeper = Keeper(shelf, clock, outbound, allow_private=lambda: lab, **options)
    await keeper.open()
    try:
        yield keeper, shelf
    finally:
        await outbound.aclose()


def answering(node: LabNode, owner: Key, number: int = 0) -> LabNode:
    """``node`` as the node of ``owner`` that its record says it is."""
    signing = Key(f"{owner.name}/{number}")
    node.operator, node.node = owner.operator, number
    node.key, node.signing, node.owner = signing.private, signing.address, owner.address
    node.wall_ms = lambda: NOW * 1000
    return node


def record_of(node: LabNode, owner: Key, number: int = 0, **changes: Any) -> dict[str, str]:
    """The record of a node that `answering` made."""
    changes = {"base_url": node.base_url, "cert": certificate(owner, number), **changes}
    return record(owner, number, **changes)
