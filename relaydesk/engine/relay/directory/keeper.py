"""Keeping a directory: taking nodes' records, looking at them from outside, signing in time."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock
from relaydesk.core.relay.bucket import Buckets
from relaydesk.core.relay.directory.base_url import check_base_url
from relaydesk.core.relay.directory.document import LONGEST_S, floor_of_bytes
from relaydesk.core.relay.directory.record import NodeRecord, read_record
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.directory.outside import look
from relaydesk.engine.relay.directory.shelf import Shelf, stamp
from relaydesk.engine.relay.outbound.outbound import Outbound

_log: Final = logging.getLogger(__name__)

# New records handed in, a minute and at once: of all admitted operators, and of one.
PER_MINUTE, BURST = 300, 20
OWNER_PER_MINUTE, OWNER_BURST = 6, 12
# How many are looked at from outside at once; who comes then is told to come again.
LOOKS: Final = 8
NODES_EACH: Final = 64
NODES_ALL: Final = 2000
# How often the folder is looked at for what a verb changed there.
WATCH_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Served:
    """The document as it is given out; ``etag`` with its quotes."""

    data: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a record: it is in the directory's document of ``document_version``."""

    ref: NodeRef
    version: int
    document_version: int


class Keeper:
    """One kept directory. `open` first; run it as a service. ``life_s`` and ``sleep`` are for tests."""

    name = "directory keeper"

    def __init__(
        self,
        shelf: Shelf,
        clock: Clock,
        outbound: Outbound,
        *,
        allow_private: Callable[[], bool],
        life_s: int = LONGEST_S,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self._shelf = shelf
        self._clock = clock
        self._outbound = outbound
        self._allow_private = allow_private
        self._life_s = life_s
        self._sleep = sleep
        self._served: Served | None = None
        self._version = 0
        self._signed_at_s = 0
        self._active: frozenset[str] = frozenset()
        self._held: dict[NodeRef, NodeRecord] = {}
        self._stamp: tuple[tuple[int, int, int], ...] = ()
        self._handed_in = Buckets()
        self._looking = 0
        self._signing = asyncio.Lock()
        self.address = ""

    async def open(self) -> None:
        """Read the folder and sign. Raises `FaultError` where no directory is kept there."""
        self.address = (await asyncio.to_thread(self._shelf.key)).address
        await self.sign()

    def served(self) -> Served | None:
        """The document to give out."""
        return self._served

    @property
    def nodes(self) -> int:
        """How many records are held."""
        return len(self._held)

    async def run(self) -> None:
        """Sign again when half the time is over, or somebody changed the folder, until cancelled."""
        while True:
            await self._sleep(WATCH_S)
            await self.look_after()

    async def look_after(self) -> None:
        """Sign where it is time."""
        found = await asyncio.to_thread(self._now_stamp)
        due = self._now_s() - self._signed_at_s >= self._life_s // 2 or self._now_s() < self._signed_at_s
        if found != self._stamp or due:
            await self.sign()

    async def sign(self) -> None:
        """Sign what the folder holds now. Raises `FaultError`; what was signed before is still given out."""
        async with self._signing:
            now = self._now_s()
            data = await asyncio.to_thread(self._shelf.sign, now, self._life_s)
            held = await asyncio.to_thread(self._shelf.read, now)
            self._stamp = await asyncio.to_thread(self._now_stamp)
            self._served = Served(data, f'"{hashlib.sha256(data).hexdigest()[:32]}"')
            self._version = floor_of_bytes(data, self.address).version
            self._signed_at_s = now
            self._active = frozenset(each.owner for each in held.operators if each.status == "active")
            self._held = {each.ref: each for each in held.records}

    async def accept(self, data: bytes) -> Accepted:
        """Take a record that somebody handed in: into the next document, once it was seen from outside.

        Raises `Refused` with the reason, `EnvError` where it cannot be kept.
        """
        record = read_record(data, self._now_s())
        if record.owner not in self._active:
            raise Refused(
                "not_admitted",
                f"this directory does not admit the operator of this node ({record.owner})",
                "ask its keeper to: `relaydesk directory admit` with that address",
            )
        # What is listed is public: whoever hands it in again must not use up its operator's turns, nor a
        # stranger everybody's. So only what an admitted operator has newly signed counts.
        if not self._newer(record):
            return Accepted(record.ref, record.version, self._version)
        now = self._clock.mono()
        if self._handed_in.take(record.owner, OWNER_PER_MINUTE, now, burst=OWNER_BURST):
            raise _busy("this operator hands in records too often")
        if self._handed_in.take("", PER_MINUTE, now, burst=BURST):
            raise _busy("too many records are handed in here")
        self._room(record)
        if record.status == "active":
            check_base_url(record.base_url, allow_private=self._allow_private())
            await self._look(record)
        # Another one may have come meanwhile, or its operator been evicted.
        if record.owner not in self._active:
            raise Refused("not_admitted", "this directory no longer admits the operator of this node")
        if self._newer(record):
            await asyncio.to_thread(self._shelf.put, record)
            await self.sign()
            _log.info("listed node %s, version %d", record.ref, record.version)
        return Accepted(record.ref, record.version, self._version)

    def _newer(self, record: NodeRecord) -> bool:
        """False where it is held already. Raises `Refused` for one that must not replace another."""
        held = self._held.get(record.ref)
        if held is None:
            return True
        if held.owner != record.owner:
            raise Refused("conflict", "another owner's node has this operator's id here")
        if held.digest == record.digest:
            return False
        if record.rank < held.rank:
            raise Refused("rollback", f"version {held.version} of this record is known already")
        if record.rank == held.rank:
            raise Refused(
                "conflict", f"another record of version {held.version} is known", "raise its version"
            )
        return True

    def _room(self, record: NodeRecord) -> None:
        if record.ref in self._held:
            return
        own = sum(1 for each in self._held.values() if each.owner == record.owner)
        if own >= NODES_EACH:
            raise Refused("full", f"an operator has at most {NODES_EACH} nodes in this directory")
        if len(self._held) >= NODES_ALL:
            raise Refused("full", f"this directory lists {NODES_ALL} nodes, and no more")

    async def _look(self, record: NodeRecord) -> None:
        if self._looking >= LOOKS:
            raise _busy("too many nodes are being looked at")
        self._looking += 1
        try:
            await look(record, self._outbound, self._now_s())
        finally:
            self._looking -= 1

    def _now_stamp(self) -> tuple[tuple[int, int, int], ...]:
        return stamp(self._shelf.watched())

    def _now_s(self) -> int:
        return self._clock.wall_ms() // 1000


async def keep(keeper: Keeper, failed: Callable[[str], None]) -> None:
    """Run a keeper where nobody else looks after services: what fails is said and tried again."""
    while True:
        try:
            await keeper.run()
        except FaultError as error:
            failed(error.fault.sentence)


def _busy(why: str) -> Refused:
    return Refused("busy", why, "it is tried again by itself")
