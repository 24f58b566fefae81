"""A node's side of directories over a real database and real sockets, with a clock set by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaydesk.core.relay.directory.source import Source
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.relay.directory.book import Book
from relaydesk.engine.relay.directory.sources import Sources
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.store.db import Database
from relaydesk.store.directory import DirectoryRepo
from tests.support.clock import FakeClock
from tests.support.directory_world import NOW


def no_tls() -> Any:
    raise AssertionError("nothing here speaks TLS")


@dataclass
class Side:
    """One node's book and sources; ``changes`` counts what it was told."""

    database: Database
    clock: FakeClock
    outbound: Outbound
    alerts: AlertBoard
    repo: DirectoryRepo
    book: Book
    sources: Sources
    changes: list[str] = field(default_factory=list)

    def standing_alerts(self) -> dict[str, str]:
        """Alerts by code: their messages."""
        return {each.code: each.message for each in self.alerts.view().alerts}


@asynccontextmanager
async def side(
    folder: Path, *pinned: Source, clock: FakeClock | None = None, lab: bool = True
) -> AsyncIterator[Side]:
    """Opened over the database in ``folder``; leaving it is a restart."""
    clock = clock or FakeClock(NOW * 1000)
    database = Database(folder / "relaydesk.db")
    await database.open()
    outbound = Outbound(clock, allow_private=lambda: lab, tls=no_tls)
    alerts, repo, changes = AlertBoard(clock, Bus()), DirectoryRepo(database), []
    told = lambda: changes.append("changed")  # noqa: E731
    book = Book(repo, clock, alerts, allow_private=lambda: lab, on_change=told)
    sources = Sources(pinned, book, repo, outbound, clock, alerts, on_change=told, sleep=clock.sleep)
    try:
        await book.open()
        await sources.open()
        yield Side(database, clock, outbound, alerts, repo, book, sources, changes)
    finally:
        await outbound.aclose()
        await database.close()
