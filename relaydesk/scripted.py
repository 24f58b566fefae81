"""``ScriptedNode``: a `NodeApi` that replays a recording, for tests, screenshots and bug reports.

A recording is lines of JSON, ``{"at_ms": …, "update": {…}}``: milliseconds since the recording began, and
an update as watchers get them, the first with every section. `Recorder` writes one from a live watch.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from typing import Any, BinaryIO, Final

import msgspec

from relaydesk.core.codec import decode, encode, fault_view
from relaydesk.core.commands import Access, Command, Outcome, name_of, read_only_fault
from relaydesk.core.errors import Fault, LocalError
from relaydesk.core.ports import Clock
from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import HopsView, NetworkView, RelaysView
from relaydesk.core.view.node_view import SECTIONS, NodeView, Update
from relaydesk.core.view.sections import Section
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.engine.watch import QUEUE_LIMIT
from relaydesk.node_api import WatchClosedError

# Sections that older recordings lack: a node of that time took no part in a network and kept no books.
_LATER: Final[dict[str, Any]] = {
    "network": NetworkView(),
    "relays": RelaysView(),
    "hops": HopsView(),
    "ledger": LedgerView(),
    "hopcheck": HopCheckView(),
}

Sleep = Callable[[float], Awaitable[None]]


class Frame(msgspec.Struct, frozen=True):
    """One line of a recording."""

    at_ms: int
    update: Update


def read_recording(lines: Iterable[bytes]) -> tuple[Frame, ...]:
    """A recording's frames. Raises `LocalError` ``invalid_request`` naming the line that cannot be read."""
    frames: list[Frame] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            frame = decode(line, Frame)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise _bad_line(number, str(error)) from None
        if not frames:
            frame = msgspec.structs.replace(frame, update=_completed(frame.update))
            missing = [name for name in SECTIONS if getattr(frame.update, name) is None]
            if missing:
                raise _bad_line(number, f"the first update lacks {', '.join(missing)}")
        elif frame.at_ms < frames[-1].at_ms:
            raise _bad_line(number, "time runs backwards")
        frames.append(frame)
    if not frames:
        raise LocalError("invalid_request", "the recording is empty", "record one with `demo --record FILE`")
    return tuple(frames)


class Recorder:
    """Writes a watch down as a recording."""

    def __init__(self, file: BinaryIO, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    async def record(self, updates: AsyncIterator[Update]) -> None:
        """Write every update until the watch ends; each line is on disk's way before the next is taken."""
        start: float | None = None
        try:
            async for update in updates:
                now = self._clock.mono()
                start = now if start is None else start
                line = encode(Frame(int((now - start) * 1000), update)) + b"\n"
                await asyncio.to_thread(self._write, line)
        except WatchClosedError:
            return

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()


class ScriptedNode:
    """A recording as a node. It plays from its making on, ``speed`` times as fast as it was recorded.

    After its last frame it stands still. Commands are refused: a recording cannot be changed.
    """

    def __init__(
        self,
        frames: Collection[Frame],
        clock: Clock,
        *,
        speed: float = 1.0,
        access: Access = Access.WRITE,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._frames = tuple(frames)
        self._clock = clock
        self._speed = speed
        self._access = access
        self._sleep = sleep
        self._start = clock.mono()
        self._stopped = asyncio.Event()

    @property
    def access(self) -> Access:
        return self._access

    def stop(self) -> None:
        """Close every watch with ``stopped``, as a node that ends does."""
        self._stopped.set()

    async def snapshot(self) -> NodeView:
        return self._view(self._due())

    async def watch(self, topics: Collection[str] | None = None) -> AsyncIterator[Update]:
        if topics is not None and (unknown := set(topics) - set(SECTIONS)):
            raise LocalError(
                "invalid_request",
                f"there is no section {sorted(unknown)[0]!r}",
                f"choose out of {', '.join(SECTIONS)}",
            )
        chosen = SECTIONS if topics is None else tuple(name for name in SECTIONS if name in topics)
        shown = self._due()
        yield self._view(shown).as_update(frozenset(chosen))
        while True:
            if self._stopped.is_set():
                raise WatchClosedError("stopped")
            due = self._due()
            if due - shown > QUEUE_LIMIT:
                raise WatchClosedError("lagged")
            if due == shown:
                await self._next_frame(shown)
                continue
            update = self._frames[shown].update
            shown += 1
            sections = {name: section for name in chosen if (section := getattr(update, name)) is not None}
            if sections:
                yield Update(seq=update.seq, **sections)

    async def call(self, command: Command) -> Outcome:
        fault = read_only_fault(command) if self._access is Access.READ else None
        if fault is None:
            fault = Fault(
                "refused", f"this is a recording and cannot do {name_of(command)}", "attach to a running node"
            )
        return Outcome(ok=False, fault=fault_view(fault))

    def _due(self) -> int:
        """How many frames have been played by now; the first one always has."""
        now_ms = (self._clock.mono() - self._start) * 1000 * self._speed
        return max(1, bisect_right(self._frames, now_ms, key=lambda frame: frame.at_ms))

    async def _next_frame(self, shown: int) -> None:
        """Wait until frame ``shown`` is due or `stop` is called; past the last frame, for `stop` only."""
        stopped = spawn(self._stopped.wait(), name="recording: stop")
        waits: set[asyncio.Task[Any]] = {stopped}
        if shown < len(self._frames):
            waits.add(spawn(self._until(self._frames[shown].at_ms), name="recording: next frame"))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                await cancel_and_wait(wait)

    async def _until(self, at_ms: int) -> None:
        due = self._start + at_ms / 1000 / self._speed
        # A sleep may end early by a rounding; the frame counts as due by the clock alone.
        while (left := due - self._clock.mono()) > 0:
            await self._sleep(max(left, 0.001))

    def _view(self, shown: int) -> NodeView:
        first = self._frames[0].update
        view = NodeView(seq=first.seq, **{name: getattr(first, name) for name in SECTIONS})
        for frame in self._frames[1:shown]:
            view = view.replaced(frame.update)
        return view


def _completed(first: Update) -> Update:
    """The first update with the sections that nodes did not have yet when it was written."""
    if first.meta is None:
        return first
    made: dict[str, Any] = {
        name: Section("ready", first.meta.as_of_ms, value)
        for name, value in _LATER.items()
        if getattr(first, name) is None
    }
    return msgspec.structs.replace(first, **made)


def _bad_line(number: int, why: str) -> LocalError:
    return LocalError(
        "invalid_request",
        f"line {number} of the recording cannot be read: {why}",
        "record it again with this version of relaydesk",
    )
