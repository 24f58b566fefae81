"""The pinned directories: read in time, checked, remembered, and never taken back to an older one."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock
from relaydesk.core.relay.directory.document import Document, Floor, check_forward, floor_of, open_document
from relaydesk.core.relay.directory.refusal import Kind, Refused
from relaydesk.core.relay.directory.source import Source
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.network import DirectoryView
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.relay.directory.book import Book
from relaydesk.engine.relay.directory.fetch import fetch
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.store.directory import DirectoryRepo, StoredDocument

_log: Final = logging.getLogger(__name__)

# How often a directory is looked at where it lives long, and how soon at the least.
REFRESH_S: Final = 300.0
LEAST_S: Final = 10.0
FIRST_BACK_OFF_S: Final = 10.0
LONGEST_BACK_OFF_S: Final = 640.0

_ALERTS: Final = ("directory_unreachable", "directory_refused", "directory_conflict")
# Of a directory that goes back or contradicts itself: it is there, and its keeper may still take records.
_BEHIND: Final[frozenset[Kind]] = frozenset({"rollback", "conflict", "expired", "future"})
_NEXT: Final[dict[Kind, str]] = {
    "not_seen": "check the place in RELAY_DIRECTORIES, and that its keeper runs; it is tried again by itself",
    "wrong_key": "pin the address that its keeper gives: `relaydesk directory init` printed it",
    "malformed": "check the place in RELAY_DIRECTORIES: something else answers there",
    "not_a_directory": "check the place in RELAY_DIRECTORIES: something else answers there",
    "expired": "its keeper must sign it anew: `relaydesk directory sign`, or a node that keeps it",
    "future": "check the clocks of both machines",
}
_ASK: Final = "ask its keeper"


@dataclass(slots=True)
class _State:
    """What is known of one place."""

    source: Source
    etag: str = ""
    read: bytes = b""  # SHA-256 of what was read last and found good
    checked_at_ms: int = 0
    failures: int = 0
    kind: Kind | None = None
    problem: SafeText = SafeText("")  # noqa: RUF009 - immutable


class Sources:
    """Keeps the directories of ``RELAY_DIRECTORIES`` current and tells the `Book`.

    `open` first: it takes what the disk has, as far as that is still valid. ``interval_s`` is asked for the
    longest time between two looks; ``sleep`` is for tests.
    """

    name = "directories"

    def __init__(
        self,
        sources: Sequence[Source],
        book: Book,
        repo: DirectoryRepo,
        outbound: Outbound,
        clock: Clock,
        alerts: AlertBoard,
        *,
        on_change: Callable[[], None],
        interval_s: Callable[[], float] = lambda: REFRESH_S,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self._states = [_State(each) for each in dict.fromkeys(sources)]
        self._book = book
        self._repo = repo
        self._outbound = outbound
        self._clock = clock
        self._alerts = alerts
        self._on_change = on_change
        self._interval_s = interval_s
        self._sleep = sleep
        self._floors: dict[str, Floor] = {}
        self._documents: dict[str, Document] = {}
        self._accepting = asyncio.Lock()
        self._wake: dict[Source, asyncio.Event] = {each.source: asyncio.Event() for each in self._states}

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is pinned, in the order of the setting."""
        return tuple(each.source for each in self._states)

    def document(self, key: str) -> Document | None:
        """The directory of a key that holds now, or None."""
        found = self._documents.get(key)
        return found if found is not None and found.expires_at > self._now_s() else None

    def views(self) -> tuple[DirectoryView, ...]:
        """Each pinned place, for people."""
        return tuple(self._view(each) for each in self._states)

    async def open(self) -> None:
        """Take the last good documents from the disk. Raises `EnvError`."""
        stored = await self._repo.documents()
        for key in dict.fromkeys(each.source.key for each in self._states):
            kept = stored.get(key)
            if kept is None:
                continue
            self._floors[key] = kept.floor
            try:
                document = await asyncio.to_thread(open_document, kept.data, key, self._now_s())
            except Refused as error:
                _log.info("the kept document of directory %s is not used: %s", key[:8], error.fault.message)
            else:
                self._documents[key] = document
        await self._publish()

    async def run(self) -> None:
        """Look at every place in its time until cancelled."""
        if not self._states:
            return
        async with asyncio.TaskGroup() as group:
            for state in self._states:
                group.create_task(self._keep(state), name=f"directory {state.source.key[:8]}")

    def refresh_soon(self, source: Source) -> None:
        """Look at a place now, for example after something was handed in there."""
        if source in self._wake:
            self._wake[source].set()

    def unusable(self, source: Source) -> bool:
        """Whether a place showed no directory of the pinned key when it was looked at last."""
        return any(
            each.kind is not None and each.kind not in _BEHIND
            for each in self._states
            if each.source == source
        )

    async def refresh(self, source: Source) -> bool:
        """Look at one place now; whether all is well with it. Never raises for what the place does."""
        state = next(each for each in self._states if each.source == source)
        try:
            await self._look(state)
        except Refused as error:
            await self._drop_expired(state)
            self._failed(state, error.kind, error.fault.message, error.fault.hint)
        except FaultError as error:  # the disk: what was read is not taken
            await self._drop_expired(state)
            self._failed(state, "not_seen", error.fault.message, error.fault.hint)
        else:
            if state.failures:
                _log.info("the directory at %s is read again", state.source.place)
            state.failures, state.kind = 0, None
            state.problem = SafeText("")
            for code in _ALERTS:
                self._alerts.clear(code, subject=self._subject(state))
        self._on_change()
        return state.failures == 0

    async def _keep(self, state: _State) -> None:
        wake = self._wake[state.source]
        while True:
            wake.clear()
            await self.refresh(state.source)
            pause = spawn(self._sleep(self._pause(state)), name="directory pause")
            woken = spawn(wake.wait(), name="directory wake")
            try:
                await asyncio.wait([pause, woken], return_when=asyncio.FIRST_COMPLETED)
            finally:
                await cancel_and_wait(pause)
                await cancel_and_wait(woken)

    def _pause(self, state: _State) -> float:
        """Until the next look: at half of what is left of the document, or the back-off after failures."""
        document = self.document(state.source.key)
        left = float(document.expires_at - self._now_s()) if document is not None else self._interval_s()
        if state.failures:
            back_off = FIRST_BACK_OFF_S * float(1 << (min(state.failures, 16) - 1))
            # Not past the end of what is held: it must not stay in use.
            return max(1.0, min(back_off, LONGEST_BACK_OFF_S, left))
        longest = self._interval_s()
        return max(min(LEAST_S, longest, left), min(longest, left / 2))

    async def _look(self, state: _State) -> None:
        key = state.source.key
        held = self.document(key)
        got = await fetch(state.source, state.etag if held is not None else "", self._outbound)
        state.checked_at_ms = self._clock.wall_ms()
        if got.data is None:
            return
        read = hashlib.sha256(got.data).digest()
        if held is None or read != state.read:
            document = await asyncio.to_thread(open_document, got.data, key, self._now_s())
            await self._accept(key, document, got.data)
        state.read, state.etag = read, got.etag

    async def _accept(self, key: str, document: Document, data: bytes) -> None:
        """Take a document that is good in itself. Raises `Refused`, `EnvError`."""
        # Two places may show the same directory: one after the other.
        async with self._accepting:
            if check_forward(document, self._floors.get(key)):
                floor = floor_of(document)
                await self._repo.keep_document(key, StoredDocument(floor, data))
                self._floors[key] = floor
            elif key in self._documents:
                return
            self._documents[key] = document
            await self._publish()

    async def _publish(self) -> None:
        keys = dict.fromkeys(each.source.key for each in self._states)
        held = [self.document(key) for key in keys]
        await self._book.update([each for each in held if each is not None])

    async def _drop_expired(self, state: _State) -> None:
        key = state.source.key
        held = self._documents.get(key)
        if held is not None and held.expires_at <= self._now_s():
            del self._documents[key]
            await self._publish()

    def _failed(self, state: _State, kind: Kind, message: str, hint: str) -> None:
        place = state.source.place
        step = hint or _NEXT.get(kind, _ASK)
        problem = safe_text(f"{message}: {step}", 512)
        if problem != state.problem:
            _log.warning("the directory at %s: %s", safe_text(place, 200), problem)
        state.failures += 1
        state.kind = kind
        state.checked_at_ms = self._clock.wall_ms()
        state.problem = problem
        code = "directory_refused"
        if kind in ("rollback", "conflict"):
            code = "directory_conflict"
        elif kind == "not_seen":
            code = "directory_unreachable"
        for other in _ALERTS:
            if other != code:
                self._alerts.clear(other, subject=self._subject(state))
        held = self.document(state.source.key) is not None
        meanwhile = (
            "what was read before is used until it expires" if held else "whom only it admits is not used"
        )
        self._alerts.raise_alert(
            code,
            f"the directory at {place}: {message}; {meanwhile}",
            step,
            severity="warning" if held and code == "directory_unreachable" else "error",
            subject=self._subject(state),
        )

    def _subject(self, state: _State) -> str:
        return str(safe_text(str(state.source)))

    def _view(self, state: _State) -> DirectoryView:
        document = self.document(state.source.key)
        return DirectoryView(
            address=state.source.key,
            source=safe_text(state.source.place),
            version=document.version if document is not None else 0,
            issued_at_ms=document.issued_at * 1000 if document is not None else 0,
            expires_at_ms=document.expires_at * 1000 if document is not None else 0,
            checked_at_ms=state.checked_at_ms,
            nodes=len(document.records) if document is not None else 0,
            problem=state.problem,
        )

    def _now_s(self) -> int:
        return self._clock.wall_ms() // 1000
