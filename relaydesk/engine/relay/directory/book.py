"""Which nodes there are, as this node takes it: the directories merged, with what was decided by hand."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.directory.document import Document
from relaydesk.core.relay.directory.merge import Clash, Entry, Known, Merged, merge
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.alerts import AlertBoard
from relaydesk.store.directory import Choice, DirectoryRepo

# A hostile directory could make thousands; the board holds a hundred alerts of all kinds.
_CLASHES_SHOWN: Final = 8


class Book:
    """`Directory` over the pinned directories. `open` before use; `update` where a directory changed.

    What a merge finds out is remembered before anybody is told of it. Entries end by themselves when the
    certificate or the last directory that vouches for them ends.
    """

    def __init__(
        self,
        repo: DirectoryRepo,
        clock: Clock,
        alerts: AlertBoard,
        *,
        allow_private: Callable[[], bool],
        on_change: Callable[[], None],
    ) -> None:
        self._repo = repo
        self._clock = clock
        self._alerts = alerts
        self._allow_private = allow_private
        self._on_change = on_change
        self._lock = asyncio.Lock()
        self._known = Known()
        self._documents: tuple[Document, ...] = ()
        self._entries: tuple[Entry, ...] = ()
        self._admitted: dict[NodeRef, Entry] = {}
        self._nodes: tuple[Listed, ...] = ()
        self._nodes_until_s = 0
        self._clashes: set[str] = set()

    async def open(self) -> None:
        """Read what earlier runs found out. Raises `EnvError`."""
        self._known = await self._repo.known()

    def nodes(self) -> tuple[Listed, ...]:
        """Every admitted node, in the order of their references."""
        now = self._now_s()
        if now >= self._nodes_until_s:
            live = [each for each in self._admitted.values() if each.until_s > now]
            self._nodes = tuple(each.listed() for each in live)
            self._nodes_until_s = min((each.until_s for each in live), default=now + 3600)
        return self._nodes

    def find(self, ref: NodeRef) -> Listed | None:
        """One admitted node, or None."""
        entry = self._admitted.get(ref)
        return entry.listed() if entry is not None and entry.until_s > self._now_s() else None

    def entries(self) -> tuple[Entry, ...]:
        """Every node that a directory lists, whether it is admitted and why not, for people."""
        return self._entries

    @property
    def known(self) -> Known:
        """First owners and choices."""
        return self._known

    def owners(self) -> dict[str, str]:
        """Every owner that a directory names or that was decided or remembered about, with its name."""
        found: dict[str, str] = {}
        for document in self._documents:
            for operator in document.operators:
                found[operator.owner] = found.get(operator.owner) or str(operator.name)
        known = self._known
        for owner in (
            *(e.owner for e in self._entries),
            *known.trusted,
            *known.blocked,
            *known.owners.values(),
        ):
            found.setdefault(owner, "")
        return found

    async def update(self, documents: Sequence[Document]) -> None:
        """Go on with these directories, the one pinned first in front. Raises `EnvError`."""
        async with self._lock:
            self._documents = tuple(documents)
            await self._merge()

    async def choose(self, owner: str, choice: Choice) -> None:
        """Trust or block an owner, from now on. Raises `EnvError`."""
        async with self._lock:
            await self._repo.choose(owner, choice, self._clock.wall_ms())
            await self._reread()

    async def forget(self, owner: str) -> bool:
        """Forget what was decided and remembered about an owner; false: there was nothing."""
        async with self._lock:
            known = await self._repo.forget(owner)
            await self._reread()
            return known

    async def _reread(self) -> None:
        self._known = await self._repo.known()
        await self._merge()

    async def _merge(self) -> None:
        work = functools.partial(merge, self._documents, self._known, allow_private=self._allow_private())
        merged = await asyncio.to_thread(work)
        if merged.owners or merged.seen:
            await self._repo.remember(merged.owners, merged.seen)
            self._known = dataclasses.replace(
                self._known,
                owners={**merged.owners, **self._known.owners},
                seen={**self._known.seen, **merged.seen},
            )
        self._take(merged)

    def _take(self, merged: Merged) -> None:
        self._tell(merged.clashes)
        if merged.entries == self._entries:
            return
        self._entries = merged.entries
        self._admitted = {each.ref: each for each in merged.entries if each.standing == "admitted"}
        self._nodes_until_s = 0
        self._on_change()

    def _tell(self, clashes: Sequence[Clash]) -> None:
        shown = clashes[:_CLASHES_SHOWN]
        for subject in self._clashes - {each.subject for each in shown}:
            self._alerts.clear("directory_clash", subject=subject)
        for each in shown:
            self._alerts.raise_alert("directory_clash", each.message, each.hint, subject=each.subject)
        self._clashes = {each.subject for each in shown}

    def _now_s(self) -> int:
        return self._clock.wall_ms() // 1000
