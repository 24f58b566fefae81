"""Watchers: everyone who wants the view kept fresh.

A tick (4 a second at most) gives each watcher the sections that changed since its last update; notable
events are sent at once. Each watcher has a short queue: one that does not keep up is closed with
``lagged``, since stale data shown as fresh is worse than none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.events import Event
from relaydesk.core.view.node_view import SECTIONS, Update
from relaydesk.engine.bus import Bus
from relaydesk.engine.projector import Projector
from relaydesk.node_api import WatchClosedError

TICK_S: Final = 0.25
# At four updates a second a watcher may fall eight seconds behind.
QUEUE_LIMIT: Final = 32
WATCHER_LIMIT: Final = 64


class _Watcher:
    def __init__(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.queue: asyncio.Queue[Update] = asyncio.Queue(QUEUE_LIMIT)
        self.seq = 0
        self.closed = ""


class WatchHub:
    """Serves all watchers of one node; run it as a service."""

    name = "watch"

    def __init__(self, bus: Bus, projector: Projector) -> None:
        self._projector = projector
        self._watchers: set[_Watcher] = set()
        self._notable = asyncio.Event()
        self._dirty = False
        self._stopped = False
        # From the first moment on, not only while `run` runs: a snapshot must not be older than an event.
        bus.listen(self._take)

    async def run(self) -> None:
        """Feed watchers until cancelled; then close them, and whoever comes later, with ``stopped``."""
        self._stopped = False
        try:
            while True:
                try:
                    async with asyncio.timeout(TICK_S):
                        await self._notable.wait()
                except TimeoutError:
                    pass
                self._notable.clear()
                if self._dirty:
                    self._dirty = False
                    self._feed()
                # Notable events in a burst are sent together, 50 ms apart at most.
                await asyncio.sleep(0.05)
        finally:
            self._stopped = True
            try:
                self._feed()
            finally:
                for watcher in tuple(self._watchers):
                    self._close(watcher, "stopped")

    async def watch(self, topics: Collection[str] | None = None) -> AsyncIterator[Update]:
        """One watcher's updates. See `NodeApi.watch`."""
        chosen = SECTIONS if topics is None else tuple(name for name in SECTIONS if name in topics)
        if topics is not None and (unknown := set(topics) - set(SECTIONS)):
            raise LocalError(
                "invalid_request",
                f"there is no section {sorted(unknown)[0]!r}",
                f"choose out of {', '.join(SECTIONS)}",
            )
        if len(self._watchers) >= WATCHER_LIMIT:
            raise LocalError("refused", f"{WATCHER_LIMIT} watchers are attached already", "close one first")
        watcher = _Watcher(chosen)
        view = self._projector.view(chosen)
        watcher.seq = view.seq
        if self._stopped:
            self._close(watcher, "stopped")
        self._watchers.add(watcher)
        try:
            yield view.as_update(frozenset(chosen))
            while True:
                if watcher.closed and watcher.queue.empty():
                    raise WatchClosedError(watcher.closed)
                update = await watcher.queue.get()
                if update.seq >= 0:
                    yield update
        finally:
            self._watchers.discard(watcher)

    def _take(self, event: Event) -> None:
        self._projector.take(event)
        self._dirty = True
        if event.notable:
            self._notable.set()

    def _feed(self) -> None:
        for watcher in tuple(self._watchers):
            if watcher.closed:
                continue
            update = self._projector.since(watcher.seq, watcher.topics)
            if update is None:
                continue
            watcher.seq = update.seq
            try:
                watcher.queue.put_nowait(update)
            except asyncio.QueueFull:
                self._close(watcher, "lagged")

    def _close(self, watcher: _Watcher, reason: str) -> None:
        watcher.closed = reason
        if reason == "lagged":
            # What it has not seen is old; the next watch starts from a full snapshot anyway.
            while not watcher.queue.empty():
                watcher.queue.get_nowait()
        if not watcher.queue.full():
            watcher.queue.put_nowait(Update(seq=-1))
